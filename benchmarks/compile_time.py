"""Seconds that the first call costs beyond a later one, for every learner.

    python -m benchmarks.compile_time [--learners metabio ucb1]

Each learner is compiled in a process of its own, with an empty compilation cache (cold) and again
with the cache that the first process filled (warm). A first call traces, lowers and compiles;
with a warm cache it only traces, lowers and loads. Imports are not counted.
"""

import json
import tempfile
from typing import Any

from benchmarks import machine, measure
from benchmarks.measure import DELAYS

CACHES = ("cold", "warm")
SETTINGS = {"horizon": 100, "runs": 256}


def child(learner: str) -> None:
    """Print the extra seconds of the first call, by delays, as JSON.

    Another learner plays first, so that what all share (making keys, measuring delays) is not laid
    at the door of this one.
    """
    other = "exp3" if learner == "ucb1" else "ucb1"
    extra = {}
    for name in DELAYS:
        delays = measure.make_delays(name)
        measure.simulate(other, delays, **SETTINGS)
        first, later = (
            measure.timed(lambda d=delays: measure.simulate(learner, d, **SETTINGS))[1]
            for _ in range(2)
        )
        extra[name] = first - later
    print(json.dumps(extra))


def seconds(learner: str) -> dict[str, dict[str, float]]:
    """By state of the cache, then by delays."""
    with tempfile.TemporaryDirectory() as directory:
        variables = measure.compilation_cache(directory)
        return {
            cache: measure.in_fresh_process(
                "benchmarks.compile_time", "--child", learner, **variables
            )
            for cache in CACHES
        }


def main() -> None:
    import jaxbio as jb

    parser = measure.parser(__doc__, "compile_time")
    parser.add_argument("--learners", nargs="+", default=jb.learner_names())
    parser.add_argument("--child", help="(internal) the learner to compile in this process")
    options: Any = parser.parse_args()
    if options.child:
        child(options.child)
        return
    print(machine.one_line(), flush=True)
    results = {learner: seconds(learner) for learner in options.learners}
    rows = [
        (learner, *(f"{found[cache][delays]:.1f}" for delays in DELAYS for cache in CACHES))
        for learner, found in results.items()
    ]
    header = " | ".join(["learner", *(f"{d}, {c}, s" for d in DELAYS for c in CACHES)])
    print(f"\n{measure.markdown(header, rows)}")
    measure.save(options.json, results=results)


if __name__ == "__main__":
    main()
