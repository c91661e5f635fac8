"""How long does an agent take for a decision, and how long to start?

    python -m benchmarks.agent [--learners metabio ucb1] [--actions 8] [--states 12]

Each learner runs in a process of its own, first with an empty folder of compiled code (cold), then
with what the first process has left there (warm). Starting is `jb.Agent(...)` without imports, and
after another learner has started, so that what all share is not laid at the door of this one. A
round is one `select`, one `see`, and one `observe` of the round 50 before it; the fastest of all
blocks of 1,000 rounds counts. Target: less than 20 microseconds a round, the learner's included.
"""

import json
import tempfile
import time
from collections import deque
from typing import Any

import numpy as np

from benchmarks import machine, measure

TARGET, DELAY, BLOCK, BLOCKS = 20, 50, 1000, 20
PARTS = ("select", "see", "observe")


def child(learner: str, actions: int, states: int, backend: str) -> None:
    """Print the seconds of the start and the microseconds of a round, as JSON."""
    import jaxbio as jb

    def start(name: str) -> Any:
        given = {"longest": 2 * DELAY, "backend": backend}
        return jb.Agent(jb.make_learner(name), range(actions), range(states), 10**6, **given)

    start("exp3" if learner == "ucb1" else "ucb1")
    agent, seconds, cpu = measure.timed(lambda: start(learner))
    print(json.dumps({"start": cpu, "wall": seconds, **rounds(agent, states)}))


def rounds(agent: Any, states: int) -> dict[str, float]:
    """Microseconds of the parts of a round, and of a whole one."""
    generator = np.random.default_rng(0)
    seen = generator.integers(states, size=BLOCK).tolist()
    lost = (generator.random(BLOCK) < 0.3).astype(float).tolist()
    waiting: deque[int] = deque()
    clock, best = time.perf_counter, dict.fromkeys(PARTS, np.inf)
    for _ in range(BLOCKS):
        spent = dict.fromkeys(PARTS, 0.0)
        for state, loss in zip(seen, lost, strict=True):
            begun = clock()
            _, ticket = agent.select()
            decided = clock()
            agent.see(ticket, state)
            shown = clock()
            waiting.append(ticket)
            late = clock()
            if len(waiting) > DELAY:
                agent.observe(waiting.popleft(), loss)
            spent["observe"] += clock() - late
            spent["select"] += decided - begun
            spent["see"] += shown - decided
        best = {part: min(best[part], 1e6 * spent[part] / BLOCK) for part in PARTS}
    return best | {"round": sum(best.values())}


def measured(learner: str, actions: int, states: int) -> dict[str, Any]:
    """Of a cold and a warm start with machine code, and of JAX instead."""
    found = {}
    with tempfile.TemporaryDirectory() as directory:
        variables = measure.compilation_cache(directory)
        for name, backend in (("cold", "llvm"), ("warm", "llvm"), ("jit", "jit")):
            given = ("--child", learner, "--actions", actions, "--states", states)
            more = (*given, "--backend", backend)
            found[name] = measure.in_fresh_process("benchmarks.agent", *more, **variables)
    return found


def row(learner: str, found: dict[str, Any]) -> list[str]:
    fastest = {part: min(found[way][part] for way in ("cold", "warm")) for part in PARTS}
    whole = sum(fastest.values())
    return [
        learner,
        *(f"{fastest[part]:.1f}" for part in PARTS),
        f"{whole:.1f}",
        "yes" if whole < TARGET else "no",
        f"{found['jit']['round']:.0f}",
        *(f"{found[way]['start']:.2f}" for way in ("cold", "warm")),
    ]


def main() -> None:
    import jaxbio as jb

    parser = measure.parser(__doc__, "agent")
    parser.add_argument("--learners", nargs="+", default=jb.learner_names())
    parser.add_argument("--actions", type=int, default=8)
    parser.add_argument("--states", type=int, default=12)
    parser.add_argument("--child", help="(internal) the learner to run in this process")
    parser.add_argument("--backend", default="llvm", help="(internal)")
    options: Any = parser.parse_args()
    sizes = options.actions, options.states
    if options.child:
        child(options.child, *sizes, options.backend)
        return
    print(machine.one_line(), flush=True)
    results = {learner: measured(learner, *sizes) for learner in options.learners}
    header = (
        "learner | select, us | see, us | observe, us | round, us | reached | by jit, us | "
        "start cold, s | start warm, s"
    )
    print(f"\n{measure.markdown(header, (row(*one) for one in results.items()))}")
    measure.save(options.json, results=results)


if __name__ == "__main__":
    main()
