"""jaxbio against SMPyBandits, a public bandit library: UCB1 and Exp3 without delay.

    python -m benchmarks.smpybandits [--venv DIRECTORY] [--runs 1024] [--horizon 10000]

SMPyBandits plays one run at a time through the function that its own Evaluator calls; jaxbio plays
many runs with a delay of 0. Both face Bernoulli arms with the means of the paper's stochastic
instance. UCB1 is the same algorithm in both, so its mean regrets must agree, or nothing is
reported. The two Exp3 differ (rewards mixed with uniform play there, losses here): only their costs
are set side by side.

SMPyBandits 0.9.7 imports names that newer SciPy has removed, so it lives in an environment of its
own, made at the first call (kept with --venv, else thrown away). Where it cannot be installed, the
script says so and stops without an error.
"""

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from benchmarks import machine, measure

REQUIREMENTS = ("SMPyBandits==0.9.7", "numpy<2", "scipy<1.12")
POLICIES = {"ucb1": "UCB", "exp3": "Exp3"}  # jaxbio's name: theirs
FALSE_ALARM = 1e-3
PLAY = """
import contextlib, io, json, sys, time
means, horizon, runs, repeats, policy = json.loads(sys.argv[1])
with contextlib.redirect_stdout(io.StringIO()):
    from SMPyBandits import Policies
    from SMPyBandits.Arms import Bernoulli
    from SMPyBandits.Environment.Evaluator import delayed_play
    from SMPyBandits.Environment.MAB import MAB
    problem = MAB({"arm_type": Bernoulli, "params": means})
    player = getattr(Policies, policy)(len(means))
    seconds, pulls = [], []
    for _ in range(repeats):
        start = time.perf_counter()
        games = [delayed_play(problem, player, horizon, seed=1 + i, repeatId=1 + i)
                 for i in range(runs)]
        seconds.append(time.perf_counter() - start)
        pulls = [game.pulls.tolist() for game in games]
print(json.dumps({"seconds": min(seconds), "pulls": pulls}))
"""


class UnavailableError(Exception):
    """SMPyBandits cannot be had here."""


def interpreter(directory: Path) -> Path:
    """The Python of an environment with SMPyBandits, made if need be."""
    python = directory / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not python.exists():
        venv.create(directory, with_pip=True)
    if run(python, "-c", "import SMPyBandits.Environment.Evaluator").returncode:
        print("Installing SMPyBandits in an environment of its own ...", flush=True)
        done = run(python, "-m", "pip", "install", "--quiet", *REQUIREMENTS)
        if done.returncode:
            raise UnavailableError(last_line(done.stderr))
    return python


def run(python: Path, *arguments: str) -> Any:
    """-E and another directory: nothing of this project's environment gets in."""
    return subprocess.run(
        [python.absolute(), "-E", *arguments],
        capture_output=True,
        text=True,
        cwd=python.parent,
        check=False,
    )


def last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1]


def their_games(python: Path, learner: str, means: np.ndarray, *numbers: int) -> Any:
    """{"seconds": the best of the repeats, "pulls": [runs, K]}; numbers: horizon, runs, repeats."""
    arguments = json.dumps([means.tolist(), *numbers, POLICIES[learner]])
    done = run(python, "-W", "ignore", "-c", PLAY, arguments)
    if done.returncode:
        raise UnavailableError(last_line(done.stderr))
    return json.loads(done.stdout.splitlines()[-1])


def our_games(learner: str, horizon: int, runs: int, repeats: int) -> tuple[float, np.ndarray]:
    """The best seconds, after a first call that compiles, and final regrets [runs]."""
    import jaxbio as jb

    def play() -> np.ndarray:
        return measure.simulate(learner, jb.FixedDelay(0), horizon=horizon, runs=runs)

    regret = play()
    return float(measure.in_turns({learner: play}, repeats)[learner][0]), regret


def compare(python: Path, learner: str, options: Any) -> dict[str, Any]:
    """One row of the table."""
    from jaxbio.environment.instances import STOCHASTIC_P, STOCHASTIC_THETA

    means = 1 - np.array(STOCHASTIC_P) @ np.array(STOCHASTIC_THETA)  # rewards
    theirs = their_games(
        python, learner, means, options.horizon, options.their_runs, options.repeats
    )
    seconds, regret = our_games(learner, options.horizon, options.runs, options.repeats)
    their_regret = np.array(theirs["pulls"]) @ (means.max() - means)
    if learner == "ucb1":
        check_agreement(regret, their_regret)
    their_ns = measure.nanoseconds(theirs["seconds"], options.their_runs, options.horizon)
    our_ns = measure.nanoseconds(seconds, options.runs, options.horizon)
    return {
        "learner": learner,
        "smpybandits_ns": their_ns,
        "jaxbio_ns": our_ns,
        "ratio": their_ns / our_ns,
        "smpybandits_regret": float(their_regret.mean()),
        "jaxbio_regret": float(regret.mean()),
    }


def check_agreement(own: np.ndarray, theirs: np.ndarray) -> None:
    test: Any = stats.ttest_ind(own, theirs, equal_var=False)
    print(f"UCB1: mean regrets {own.mean():.1f} and {theirs.mean():.1f}, p = {test.pvalue:.2g}")
    if not test.pvalue >= FALSE_ALARM:
        sys.exit(f"UCB1 does not play the same game in both (p < {FALSE_ALARM:g}): not compared.")


def table(rows: list[dict[str, Any]]) -> str:
    cells = [
        (
            row["learner"],
            *(f"{row[name]:,.0f}" for name in ("smpybandits_ns", "jaxbio_ns", "ratio")),
            *(f"{row[name]:.1f}" for name in ("smpybandits_regret", "jaxbio_regret")),
        )
        for row in rows
    ]
    header = "learner | SMPyBandits ns | jaxbio ns | ratio | its regret | our regret"
    return measure.markdown(header, cells)


def arguments() -> Any:
    parser = measure.parser(__doc__, "smpybandits")
    parser.add_argument("--venv", type=Path, help="where its environment is, or shall be kept")
    parser.add_argument("--runs", type=int, default=1024, help="of jaxbio")
    parser.add_argument("--their-runs", type=int, default=20, help="of SMPyBandits")
    parser.add_argument("--horizon", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3, help="timings; the best counts")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    print(machine.one_line(), flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        try:
            python = interpreter(options.venv or Path(temporary))
            rows = [compare(python, learner, options) for learner in POLICIES]
        except (UnavailableError, OSError, subprocess.CalledProcessError) as error:
            print(f"Skipped: SMPyBandits cannot be installed or imported here ({error}).")
            return
    print(f"\nT = {options.horizon}, no delay; ns per round and run\n\n{table(rows)}")
    measure.save(options.json, horizon=options.horizon, runs=options.runs, results=rows)


if __name__ == "__main__":
    main()
