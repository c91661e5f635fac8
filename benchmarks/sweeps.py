"""What a sweep costs per round, by how many runs each setting has.

    python -m benchmarks.sweeps [--runs 2048] [--horizon 10000] [--repeats 3]

The same number of runs every time, as many settings with few runs or few settings with many: a
grid of delays x numbers of states, MetaBIO over DAda-Exp3, K = 8, final regret kept. Beside the
wall time of everything stands what the set-up of a setting takes on the host (`plan_sweep`, which
builds, checks, pads and groups everything and plays nothing). The sizes take turns after a first
call of each, and the best time counts. The target: settings with one run each cost at most twice
what settings with 64 runs each cost.
"""

import time
from typing import Any

from benchmarks import machine, measure

RUNS_PER_SETTING = (1, 4, 16, 64, 256)
STATES = (2, 3, 4, 5)
FIRST_DELAY = 20
TARGET = 2.0


def asked(settings: int, runs: int, random: bool, horizon: int) -> dict[str, Any]:
    """Arguments of `jaxbio.sweep`: this many settings, with one or several numbers of states."""
    import jaxbio as jb

    def environment(delay: int, states: int) -> Any:
        delays = jb.LaplaceDelay(delay, delay / 2) if random else jb.FixedDelay(delay)
        return jb.make_environment("paper-utility", delays=delays, actions=8, states=states)

    counts = STATES[: min(len(STATES), settings)]
    delays = [FIRST_DELAY + i for i in range(settings // len(counts))]
    return {
        "environment": environment,
        "learners": {"metabio": jb.make_learner("metabio")},
        "axes": {"delay": delays, "states": list(counts)},
        "horizon": horizon,
        "runs": runs,
        "rounds": 1,
        "keep": "finals",
    }


def set_up(question: dict[str, Any]) -> float:
    """Seconds that everything before the first round takes."""
    import jaxbio as jb

    start = time.perf_counter()
    jb.plan_sweep(**question)
    return time.perf_counter() - start


def main() -> None:
    parser = measure.parser(__doc__, "sweeps")
    parser.add_argument("--runs", type=int, default=2048, help="of all settings together")
    parser.add_argument("--horizon", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3, help="timings; the best counts")
    options = parser.parse_args()
    import jaxbio as jb

    print(machine.one_line(), flush=True)
    rows = []
    for random in (False, True):
        questions = {
            runs: asked(options.runs // runs, runs, random, options.horizon)
            for runs in RUNS_PER_SETTING
        }
        works = {
            runs: lambda question=question: jb.sweep(**question, progress=False)
            for runs, question in questions.items()
        }
        for work in works.values():
            work()
        best = measure.in_turns(works, options.repeats)
        for runs, question in questions.items():
            settings = options.runs // runs
            ns = measure.nanoseconds(best[runs][0], options.runs, options.horizon)
            each = 1e3 * set_up(question) / settings
            law = "laplace" if random else "fixed"
            rows.append((law, settings, runs, f"{ns:.1f}", f"{each:.2f}"))
        alone, many = best[1][0], best[64][0]
        reached = "reached" if alone <= TARGET * many else "missed"
        said = f"{law}: one run each costs {alone / many:.2f} times 64 each"
        print(f"{said} (target: at most {TARGET:g}, {reached})", flush=True)
    header = "delays | settings | runs of each | ns per round and run | set-up of a setting, ms"
    print(f"\n{measure.markdown(header, rows)}")
    measure.save(options.json, rows=rows, horizon=options.horizon)


if __name__ == "__main__":
    main()
