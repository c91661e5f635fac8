"""What a round costs with each law of delays that has a name, beside geometric ones of its mean.

    python -m benchmarks.laws [--learners ucb1 metabio] [--repeats 5]

Processor time of all threads, the best of the repeats. The ring is as deep as the longest delay, so
laws with heavy tails have a ring as long as the game, which leaves the processor's cache: the last
row is a geometric law with such a ring. The target: at most 1.5 times the first law.
"""

import math
from functools import partial
from typing import Any

from benchmarks import machine, measure

MEAN = 50
TARGET = 1.5


def laws(horizon: int) -> dict[str, Any]:
    """name -> law with the mean `MEAN`, where there is one."""
    import jaxbio as jb

    return {
        "geometric": jb.GeometricDelay(MEAN),
        "negative binomial, dispersion 2": jb.NegativeBinomialDelay(MEAN, 2),
        "log-normal, spread 0.5": jb.LogNormalDelay(MEAN / math.exp(0.5**2 / 2), 0.5),
        "log-normal, spread 1": jb.LogNormalDelay(MEAN / math.exp(1 / 2), 1),
        "pareto, tail 5": jb.ParetoDelay(MEAN * 4 / 5, 5),
        "pareto, tail 1.2": jb.ParetoDelay(MEAN / 6, 1.2),
        "pareto, tail 0.8 (no mean)": jb.ParetoDelay(25, 0.8),
        "geometric, as long a ring": jb.GeometricDelay(horizon / 10),
    }


def main() -> None:
    parser = measure.parser(__doc__, "laws")
    parser.add_argument("--learners", nargs="+", default=["ucb1", "metabio"])
    parser.add_argument("--horizon", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=5, help="timings; the best counts")
    options: Any = parser.parse_args()
    print(machine.one_line(), flush=True)
    sizes = {"horizon": options.horizon, "runs": options.runs}
    rows, found = [], []
    for learner in options.learners:
        works = {
            name: partial(measure.simulate, learner, law, **sizes)
            for name, law in laws(options.horizon).items()
        }
        for work in works.values():
            work()
        best = measure.in_turns(works, options.repeats)
        times = {name: measure.nanoseconds(cpu, options.runs, options.horizon)
                 for name, (_, cpu) in best.items()}  # fmt: skip
        for name, ns in times.items():
            ratio = ns / times["geometric"]
            found.append({"learner": learner, "delays": name, "ns": ns, "ratio": ratio})
            reached = "yes" if ratio <= TARGET else "no"
            rows.append((learner, name, f"{ns:.1f}", f"{ratio:.2f}", reached))
    header = f"learner | delays | ns | / geometric | at most {TARGET}"
    print(f"\n{measure.markdown(header, rows, left=2)}")
    measure.save(options.json, results=found)


if __name__ == "__main__":
    main()
