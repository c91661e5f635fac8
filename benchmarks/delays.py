"""What a round costs with observed delays, beside the law with the same marginal.

    python -m benchmarks.delays [--learners ucb1 metabio] [--repeats 3]

For d_max = 10, 1,000 and 100,000: a uniform law; a table of delays drawn from it; a table in which
all losses of a window arrive together at its end (bursts of d_max losses in one round, or of 1,000
where d_max is larger), whose delays are uniform too; and a shop's log: half of the losses after a
while, the others at the end of a window. Then laws: the uniform one as an EmpiricalDelay, one of
uneven probabilities, one for each state, and conversions within a window of half of d_max. The
target: everything within 1.5 times the uniform law.
"""

from functools import partial
from typing import Any

import numpy as np

from benchmarks import machine, measure

LONGEST = {10: 20_000, 1_000: 20_000, 100_000: 200_000}  # d_max -> T
BURST = 1_000  # losses, at most
TARGET = 1.5


def tables(longest: int, horizon: int) -> dict[str, np.ndarray]:
    """name -> delays [T]."""
    rng = np.random.default_rng(measure.SEED)
    rounds = np.arange(1, horizon + 1)
    window = min(longest, BURST)
    late = rng.integers(0, longest + 1, horizon)
    burst = -rounds % window
    return {
        "drawn from the law": late,
        "bursts": burst,
        "shop": np.where(rng.random(horizon) < 0.5, late, burst),
    }


def observed(longest: int) -> dict[str, Any]:
    """name -> law."""
    import jaxbio as jb

    rng = np.random.default_rng(measure.SEED)
    even = np.full(longest + 1, 1 / (longest + 1))
    uneven = rng.dirichlet(np.full(longest + 1, 0.3), 3)
    return {
        "empirical, uniform": jb.EmpiricalDelay(even),
        "empirical, uneven": jb.EmpiricalDelay(uneven[0]),
        "empirical, by state": jb.EmpiricalDelay(uneven),
        "windowed uniform": jb.WindowedDelay(jb.UniformDelay(0, longest), -(-longest // 2)),
        "windowed, by state": jb.WindowedDelay(jb.EmpiricalDelay(uneven), -(-longest // 2)),
    }


def main() -> None:
    parser = measure.parser(__doc__, "delays")
    parser.add_argument("--learners", nargs="+", default=["ucb1", "metabio"])
    parser.add_argument("--runs", type=int, default=256, help="with T = 20,000")
    parser.add_argument("--repeats", type=int, default=3, help="timings; the best counts")
    options: Any = parser.parse_args()
    import jaxbio as jb

    print(machine.one_line(), flush=True)
    rows, found = [], []
    for learner in options.learners:
        for longest, horizon in LONGEST.items():
            runs = max(32, options.runs * 20_000 // horizon)
            laws = {"law": jb.UniformDelay(0, longest)}
            laws |= {n: jb.TableDelay(x) for n, x in tables(longest, horizon).items()}
            laws |= observed(longest)
            works = {
                name: partial(measure.simulate, learner, delays, horizon=horizon, runs=runs)
                for name, delays in laws.items()
            }
            for work in works.values():
                work()
            best = measure.in_turns(works, options.repeats)
            law = measure.nanoseconds(best["law"][0], runs, horizon)
            for name, seconds in best.items():
                ns = measure.nanoseconds(seconds[0], runs, horizon)
                found.append({"learner": learner, "d_max": longest, "delays": name, "ns": ns})
                reached = "-" if name == "law" else "yes" if ns <= TARGET * law else "no"
                cells = (f"{ns:.1f}", f"{ns / law:.2f}", reached)
                rows.append((learner, f"{longest:,}", name, *cells))
            print(f"Timed {learner}, d_max = {longest:,}.", flush=True)
    header = f"learner | d_max | delays | ns | / law | at most {TARGET}"
    print(f"\n{measure.markdown(header, rows, left=3)}")
    measure.save(options.json, results=found)


if __name__ == "__main__":
    main()
