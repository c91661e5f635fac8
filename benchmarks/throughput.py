"""Rounds per second of jaxbio against what a user would otherwise write.

    python -m benchmarks.throughput [--runs 1024] [--repeats 5] [--workers 1] [--quick]

Every contestant plays the same games (DAda-Exp3 and MetaBIO on the paper's stochastic instance,
fixed and Laplace delays). First their mean final regrets must agree; then they are timed in turns,
several times over, and the best time of each counts. Compilation is timed apart. A second table
sets jaxbio against the figures it is meant to reach, with how its own cost changes with the delay,
the horizon and the number of workers.
"""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

if not __package__:  # run as a file: make the package `benchmarks` importable
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import machine, measure
from benchmarks.measure import DELTA, SEED

Case = tuple[str, str]  # learner, delays
LEARNERS = ("dada-exp3", "metabio")
DELAYS = dict(zip(measure.DELAYS, ({"delay": 50}, {"laplace": (50, 25)}), strict=True))
CASES: tuple[Case, ...] = tuple((learner, delays) for learner in LEARNERS for delays in DELAYS)
FALSE_ALARM = 1e-3  # probability that a whole check of correct contestants aborts
LOOP_RUNS = 8  # of the plain NumPy loop


@dataclass
class Contestant:
    """play(learner, delays, horizon, runs) returns the final regrets [runs]."""

    name: str
    play: Callable[[str, str, int, int], np.ndarray]
    runs: int


def jaxbio_player(
    learner: str, delays: str, horizon: int, runs: int, workers: int | None = None
) -> np.ndarray:
    made = measure.make_delays(delays)
    return measure.simulate(learner, made, horizon=horizon, runs=runs, workers=workers)


def baseline_player(play: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    from jaxbio.environment.instances import STOCHASTIC_P, STOCHASTIC_THETA

    def player(learner: str, delays: str, horizon: int, runs: int) -> np.ndarray:
        options = DELAYS[delays] | {"delta": DELTA}
        return play(learner, STOCHASTIC_P, STOCHASTIC_THETA, horizon, runs, SEED, **options)

    return player


def contestants(runs: int, workers: int | None = None) -> list[Contestant]:
    """jaxbio first; Numba only where it is installed; the plain loop with few runs.

    workers: cores of jaxbio and of Numba; None for all.
    """
    if workers is not None:
        os.environ["NUMBA_NUM_THREADS"] = str(workers)  # read when Numba is imported
    from benchmarks.baselines import numpy_loop, numpy_vectorised

    found = [Contestant("jaxbio", partial(jaxbio_player, workers=workers), runs)]
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
        Contestant("numpy vectorised", baseline_player(numpy_vectorised.play), runs),
        Contestant("numpy loop", baseline_player(numpy_loop.play), min(LOOP_RUNS, runs)),
    ]


# --- do they play the same game?


@dataclass
class FirstCalls:
    """By (case, player): final regrets [runs], seconds, and z against the first player."""

    regret: dict[tuple[Case, str], np.ndarray]
    seconds: dict[tuple[Case, str], float]
    z: dict[tuple[Case, str], float]


def difference(own: np.ndarray, other: np.ndarray) -> float:
    """Of two means, as the normal deviate z with the p-value of Welch's t-test."""
    test: Any = stats.ttest_ind(other, own, equal_var=False)
    return float(np.sign(test.statistic) * stats.norm.isf(test.pvalue / 2))


def first_calls(players: Sequence[Contestant], horizon: int) -> FirstCalls:
    """Every player in every case, with the shapes that are timed later."""
    calls = FirstCalls({}, {}, {})
    for case in CASES:
        for player in players:
            work = partial(player.play, *case, horizon, player.runs)
            calls.regret[case, player.name], calls.seconds[case, player.name], _ = measure.timed(
                work
            )
        own = calls.regret[case, players[0].name]
        for player in players[1:]:
            calls.z[case, player.name] = difference(own, calls.regret[case, player.name])
    return calls


def check_agreement(calls: FirstCalls) -> float:
    """The limit on |z|, Bonferroni-corrected over all comparisons; exit where one exceeds it."""
    limit = float(stats.norm.isf(FALSE_ALARM / len(calls.z) / 2))
    wrong = [
        f"  {learner}, {delays}: {name} {calls.regret[(learner, delays), name].mean():.1f}, "
        f"jaxbio {calls.regret[(learner, delays), 'jaxbio'].mean():.1f} (z = {z:.1f})"
        for ((learner, delays), name), z in calls.z.items()
        if not abs(z) <= limit
    ]
    if wrong:
        sys.exit(
            "Nothing was timed: the contestants do not play the same game (mean final regrets, "
            f"|z| > {limit:.2f}, family-wise false-alarm rate {FALSE_ALARM:g}).\n"
            + "\n".join(wrong)
        )
    worst = max(map(abs, calls.z.values()))
    print(
        f"The contestants agree: largest |z| of {len(calls.z)} comparisons {worst:.2f}, limit "
        f"{limit:.2f} (family-wise false-alarm rate {FALSE_ALARM:g}).",
        flush=True,
    )
    return limit


# --- the race


def race(players: Sequence[Contestant], horizon: int, repeats: int, calls: FirstCalls) -> list:
    """One record per case and player."""
    records = []
    for case in CASES:
        works = {p.name: partial(p.play, *case, horizon, p.runs) for p in players}
        best = measure.in_turns(works, repeats)
        own = best["jaxbio"][0] / players[0].runs
        for player in players:
            seconds = best[player.name]
            records.append(record(case, player, horizon, seconds, own * player.runs, calls))
        print(f"Timed {case[0]}, {case[1]}.", file=sys.stderr, flush=True)
    return records


def record(
    case: Case,
    player: Contestant,
    horizon: int,
    seconds: np.ndarray,
    own: float,
    calls: FirstCalls,
) -> dict[str, Any]:
    """seconds: [wall, CPU]; own: jaxbio's wall seconds for the same number of runs."""
    sample = calls.regret[case, player.name]
    return {
        "learner": case[0],
        "delays": case[1],
        "contestant": player.name,
        "runs": player.runs,
        "ns_per_round": measure.nanoseconds(seconds[0], player.runs, horizon),
        "cpu_ns_per_round": measure.nanoseconds(seconds[1], player.runs, horizon),
        "ratio_to_jaxbio": float(seconds[0] / own),
        "first_call_extra_seconds": max(0.0, float(calls.seconds[case, player.name] - seconds[0])),
        "mean_regret": float(sample.mean()),
        "standard_error": float(sample.std(ddof=1) / len(sample) ** 0.5),
        "z": calls.z.get((case, player.name)),
    }


def race_table(records: Sequence[dict[str, Any]]) -> str:
    """Markdown. A ratio below 1 means: faster than jaxbio."""
    rows = [
        (
            *(r[name] for name in ("learner", "delays", "contestant", "runs")),
            *(f"{r[name]:.1f}" for name in ("ns_per_round", "cpu_ns_per_round")),
            f"{r['ratio_to_jaxbio']:.2f}",
            "-"
            if r["contestant"].startswith("numpy")
            else format(r["first_call_extra_seconds"], ".1f"),
            f"{r['mean_regret']:.1f} ± {r['standard_error']:.1f}",
            "-" if r["z"] is None else format(r["z"], ".1f"),
        )
        for r in records
    ]
    header = (
        "learner | delays | contestant | runs | ns | CPU ns | / jaxbio | compile s | regret | z"
    )
    return measure.markdown(header, rows, left=3)


# --- the figures to reach


@dataclass
class Goal:
    """A speed that must be at least the target, or (flat) a cost that changes by no more."""

    figure: str
    value: float
    target: float
    flat: bool = False

    @property
    def reached(self) -> bool:
        if self.flat:
            return 1 / self.target <= self.value <= self.target
        return self.value >= self.target


def race_goals(records: Sequence[dict[str, Any]]) -> list[Goal]:
    """jaxbio against the plain loop and against the kernels written by hand."""
    fixed, random = measure.DELAYS
    targets = {("numpy loop", one): 300.0 for one in measure.DELAYS}
    targets |= {("numba scalar", one): 1.0 for one in measure.DELAYS}
    targets |= {("numba simd", fixed): 0.7, ("numba simd", random): 0.6}
    return [
        Goal(
            f"speed against the {r['contestant']}, {r['learner']}, {r['delays']}",
            r["ratio_to_jaxbio"],
            targets[r["contestant"], r["delays"]],
        )
        for r in records
        if (r["contestant"], r["delays"]) in targets
    ]


def cost_ratio(
    first: dict[str, Any], second: dict[str, Any], repeats: int, learner: str = "metabio"
) -> float:
    """Cost of a round with the second settings over that with the first, taking turns.

    Settings: delay, horizon, runs, and whatever else jaxbio.simulate takes.
    """
    import jaxbio as jb

    def player(delay: int, **options: Any) -> Callable[[], np.ndarray]:
        return partial(measure.simulate, learner, jb.FixedDelay(delay), **options)

    works = {"first": player(**first), "second": player(**second)}
    for work in works.values():
        work()
    best = measure.in_turns(works, repeats)
    rounds = [settings["runs"] * settings["horizon"] for settings in (first, second)]
    return float((best["second"][0] / rounds[1]) / (best["first"][0] / rounds[0]))


def own_goals(runs: int, horizon: int, repeats: int) -> list[Goal]:
    """How jaxbio's cost changes with workers, delay and horizon (MetaBIO, fixed delay).

    The longer delay is 1,000 times the shorter one and half of the horizon. The longer horizon is
    100 times the shorter one, played with fewer runs; both are enough to drown the cost of a call.
    """
    usual = {"delay": 50, "horizon": horizon, "runs": runs}
    short, long = max(1, horizon // 1000), horizon
    few = max(8, runs // 4)
    slower = cost_ratio(usual | {"workers": 2}, usual | {"workers": 1}, repeats)
    ring = usual | {"horizon": 2 * horizon}
    deeper = cost_ratio(ring | {"delay": short}, ring | {"delay": long}, repeats)
    far = usual | {"horizon": 100 * horizon, "runs": few}
    longer = cost_ratio(usual | {"runs": 16 * few}, far, repeats)
    return [
        Goal("speed of two workers against one", slower, 1.7),
        Goal(f"cost at d = {long:,} / at d = {short:,}", deeper, 1.3, flat=True),
        Goal(f"cost at T = {100 * horizon:,} / at T = {horizon:,}", longer, 1.1, flat=True),
    ]


def goals_table(goals: Sequence[Goal]) -> str:
    rows = [
        (
            goal.figure,
            f"{goal.value:.2f}x",
            f"{'flat within' if goal.flat else '>='} {goal.target:g}x",
            "yes" if goal.reached else "no",
        )
        for goal in goals
    ]
    return measure.markdown("figure | measured | target | reached", rows)


def arguments() -> Any:
    parser = measure.parser(__doc__, "throughput")
    parser.add_argument("--runs", type=int, default=1024, help="games side by side")
    parser.add_argument("--horizon", type=int, default=10_000, help="rounds of a game")
    parser.add_argument("--repeats", type=int, default=5, help="timings; the best counts")
    parser.add_argument("--workers", type=int, help="cores of jaxbio and Numba (default: all)")
    parser.add_argument("--quick", action="store_true", help="256 runs, 2000 rounds, 2 repeats")
    options = parser.parse_args()
    if options.quick:
        options.runs, options.horizon, options.repeats = 256, 2_000, 2
    if min(options.runs, options.horizon, options.repeats) < 1 or options.runs < 8:
        parser.error("--runs must be at least 8, --horizon and --repeats at least 1")
    return options


def main() -> None:
    options = arguments()
    print(machine.one_line(), flush=True)
    players = contestants(options.runs, options.workers)
    calls = first_calls(players, options.horizon)
    limit = check_agreement(calls)
    records = race(players, options.horizon, options.repeats, calls)
    print(
        f"\nT = {options.horizon}, best of {options.repeats}; ns per round per run, all cores "
        "(NumPy: one core); CPU ns: summed over cores\n"
    )
    print(race_table(records), flush=True)
    goals = race_goals(records) + own_goals(options.runs, options.horizon, options.repeats)
    print(f"\nFigures to reach\n\n{goals_table(goals)}")
    measure.save(
        options.json,
        horizon=options.horizon,
        repeats=options.repeats,
        false_alarm_rate=FALSE_ALARM,
        z_limit=limit,
        results=records,
        figures=[vars(goal) | {"reached": goal.reached} for goal in goals],
    )


if __name__ == "__main__":
    main()
