"""Rounds per second of jaxbio against what a user would otherwise write.

    python -m benchmarks.throughput [--runs 1024] [--horizon 10000] [--repeats 5] [--quick]

Every contestant plays the same games (DAda-Exp3 and MetaBIO on the paper's stochastic instance,
fixed and Laplace delays). First their mean final regrets must agree; then they are timed in turns,
several times over, and the best time of each counts. Compilation is timed apart.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

INSTANCE = "paper-stochastic"
LEARNERS = ("dada-exp3", "metabio")
DELAYS: dict[str, dict[str, Any]] = {
    "fixed(50)": {"delay": 50},
    "laplace(50,25)": {"laplace": (50, 25)},
}
CASES = tuple((learner, delays) for learner in LEARNERS for delays in DELAYS)
FALSE_ALARM = 1e-3  # probability that a whole check of correct contestants aborts
DELTA = 0.1
SEED = 0


@dataclass
class Contestant:
    """play(learner, delays, horizon, runs) returns the final regrets [runs]."""

    name: str
    play: Callable[[str, str, int, int], np.ndarray]
    runs: int


def jaxbio_player(learner, delays, horizon, runs):
    import jaxbio as jb

    made = {"fixed(50)": jb.FixedDelay(50), "laplace(50,25)": jb.LaplaceDelay(50, 25)}[delays]
    result = jb.simulate(
        jb.make_environment(INSTANCE, delays=made),
        jb.make_learner(learner, delta=DELTA),
        horizon=horizon,
        runs=runs,
        seed=SEED,
        rounds=1,
        progress=False,
    )
    return result.regret[:, -1]


def baseline_player(play):
    from jaxbio.environment.instances import STOCHASTIC_P, STOCHASTIC_THETA

    def player(learner, delays, horizon, runs):
        return play(
            learner,
            STOCHASTIC_P,
            STOCHASTIC_THETA,
            horizon,
            runs,
            SEED,
            delta=DELTA,
            **DELAYS[delays],
        )

    return player


def contestants(runs):
    """jaxbio first; Numba only where it is installed; NumPy with as many runs as it can bear."""
    from benchmarks.baselines import numpy_loop

    found = [Contestant("jaxbio", jaxbio_player, runs)]
    try:
        from benchmarks.baselines import numba_scalar, numba_simd
    except ModuleNotFoundError as error:
        if error.name != "numba":
            raise
        print('Numba is not installed (pip install -e ".[bench]"): its kernels are left out.')
    else:
        found += [
            Contestant("numba scalar", baseline_player(numba_scalar.play), runs),
            Contestant("numba simd", baseline_player(numba_simd.play), runs),
        ]
    return [
        *found,
        Contestant("numpy batch", baseline_player(numpy_loop.play_vectorised), max(8, runs // 16)),
        Contestant("numpy loop", baseline_player(numpy_loop.play_loop), 4),
    ]


def timed(work):
    """(what work returns, wall seconds, CPU seconds of all threads)."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def disagreement(players, regrets, level):
    """Players whose mean regret differs from the first one's (Welch's t-test at this level)."""
    lines = []
    for player, regret in zip(players[1:], regrets[1:], strict=True):
        p_value: Any = stats.ttest_ind(regrets[0], regret, equal_var=False)[1]
        if not p_value >= level:
            own = f"{players[0].name} {regrets[0].mean():.1f} over {len(regrets[0])}"
            lines.append(
                f"mean final regret of {player.name} {regret.mean():.1f} over {len(regret)} runs, "
                f"of {own} (p = {p_value:.1e})"
            )
    return lines


def warm_up(players, horizon):
    """First call of every player in every case, with the shapes that are timed later.

    Returns the regrets and the seconds of each, by (case, player); exits if players disagree.
    """
    level = FALSE_ALARM / (len(CASES) * (len(players) - 1))
    first, regret, lines = {}, {}, []
    for case in CASES:
        for player in players:
            work = partial(player.play, *case, horizon, player.runs)
            regret[case, player.name], first[case, player.name], _ = timed(work)
        found = disagreement(players, [regret[case, player.name] for player in players], level)
        lines += [f"  {case[0]}, {case[1]}: {line}" for line in found]
    if lines:
        sys.exit(
            "Nothing was timed: the contestants do not play the same game (family-wise false-alarm "
            f"rate {FALSE_ALARM:g}).\n" + "\n".join(lines)
        )
    return regret, first


def measure(players, horizon, repeats):
    """[(case, player, best wall, best CPU)]: players take turns, so noise meets them alike."""
    rows = []
    for case in CASES:
        times = {player.name: [] for player in players}
        for _ in range(repeats):
            for player in players:
                _, *seconds = timed(partial(player.play, *case, horizon, player.runs))
                times[player.name].append(seconds)
        rows += [(case, player, *np.min(times[player.name], axis=0)) for player in players]
    return rows


def results(players, horizon, repeats):
    """One record per case and player."""
    regret, first = warm_up(players, horizon)
    print(f"The contestants agree (family-wise false-alarm rate {FALSE_ALARM:g}).", flush=True)
    records, own = [], 1.0
    for case, player, wall, cpu in measure(players, horizon, repeats):
        per_round = 1e9 / (player.runs * horizon)
        own = wall * per_round if player is players[0] else own
        sample = regret[case, player.name]
        records.append(
            {
                "learner": case[0],
                "delays": case[1],
                "contestant": player.name,
                "runs": player.runs,
                "ns_per_round": wall * per_round,
                "cpu_ns_per_round": cpu * per_round,
                "ratio_to_jaxbio": wall * per_round / own,
                "first_call_extra_seconds": max(0.0, first[case, player.name] - wall),
                "mean_regret": float(sample.mean()),
                "standard_error": float(sample.std(ddof=1) / len(sample) ** 0.5),
            }
        )
    return records


def table(records):
    """Markdown. A ratio below 1 means: faster than jaxbio."""
    lines = [
        "| learner | delays | contestant | runs | ns | CPU ns | / jaxbio | compile s | regret |",
        "|---|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for r in records:
        compiles = not r["contestant"].startswith("numpy")
        lines.append(
            f"| {r['learner']} | {r['delays']} | {r['contestant']} | {r['runs']} "
            f"| {r['ns_per_round']:.1f} | {r['cpu_ns_per_round']:.1f} "
            f"| {r['ratio_to_jaxbio']:.2f} "
            f"| {format(r['first_call_extra_seconds'], '.1f') if compiles else '-'} "
            f"| {r['mean_regret']:.1f} ± {r['standard_error']:.1f} |"
        )
    return "\n".join(lines)


def arguments():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1024, help="games side by side")
    parser.add_argument("--horizon", type=int, default=10_000, help="rounds of a game")
    parser.add_argument("--repeats", type=int, default=5, help="timings; the best counts")
    parser.add_argument("--quick", action="store_true", help="256 runs, 2000 rounds, 2 repeats")
    parser.add_argument("--json", type=Path, default=Path("results/throughput.json"))
    options = parser.parse_args()
    if options.quick:
        options.runs, options.horizon, options.repeats = 256, 2_000, 2
    if min(options.runs, options.horizon, options.repeats) < 1 or options.runs < 8:
        parser.error("--runs must be at least 8, --horizon and --repeats at least 1")
    return options


def main():
    from benchmarks import machine

    options = arguments()
    print(machine.one_line(), flush=True)
    records = results(contestants(options.runs), options.horizon, options.repeats)
    print(
        f"\nT = {options.horizon}, best of {options.repeats}; ns per round per run, all cores "
        "(NumPy: one core); CPU ns: summed over cores\n"
    )
    print(table(records))
    report = {
        "machine": machine.describe(),
        "horizon": options.horizon,
        "repeats": options.repeats,
        "false_alarm_rate": FALSE_ALARM,
        "results": records,
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    if not __package__:  # run as a file: make the package `benchmarks` importable
        sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    main()
