"""How often a round takes its branches and loops, counted by playing some on the CPU."""

from dataclasses import dataclass, fields
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import measure
from benchmarks.gpu_targets import WARP
from jaxbio import rng
from jaxbio.engine.backends.jnp import Vectors
from jaxbio.engine.backends.vectors import Evaluator
from jaxbio.engine.game_program import GameProgram
from jaxbio.engine.program import RUN, Region, inner_regions, live_values

WARM_UP, COUNTED = 256, 24  # rounds: before counting, and while counting
SECTOR = 32  # bytes that move where every run looks at a place of its own


@dataclass
class Played:
    """Operations outside and inside of inner loops: as they are written, and as they are executed
    in a round; bytes: that a run moves in a round, in memories that it carries on.
    """

    written_outside: float = 0
    written_inside: float = 0
    executed_outside: float = 0
    executed_inside: float = 0
    bytes: float = 0

    @property
    def share(self) -> float:
        """Of what is written outside of loops, what is executed: not all branches are taken."""
        return self.executed_outside / max(1, self.written_outside)

    @property
    def turns(self) -> float:
        """How often what is written in loops is executed."""
        return self.executed_inside / max(1, self.written_inside)


def counted(program: GameProgram, numbers: list[Any]) -> Played:
    """Of one warp, operation by operation, after some rounds in which losses begin to arrive."""
    region = program.parts["round"]
    live = live_values(region)
    found = Played()

    class Counting(Evaluator):
        """Counts what it evaluates. loops: how many it is inside of."""

        loops = 0

        def region(self, region: Region) -> None:
            size = _size(region, live)
            found.executed_outside += 0 if self.loops else size
            found.executed_inside += size if self.loops else 0
            found.bytes += _bytes(region, live)
            super().region(region)

        def loop(self, loop: Any) -> Any:
            self.loops += 1
            result = super().loop(loop)
            self.loops -= 1
            return result

    keys = rng.run_keys(measure.SEED, np.arange(WARP)).astype(np.uint32)
    vectors = Vectors(program)
    state, pause = vectors.fresh(WARP), np.array([-WARM_UP], np.int32)
    (scalars, arrays), _, _ = vectors.play(numbers, keys, state, 0, pause)
    own = [jnp.asarray(number) for number in numbers]
    with jax.disable_jit():  # so that a branch that is not taken is not looked at
        for t in range(WARM_UP + 1, WARM_UP + COUNTED + 1):
            memories = vectors.memories(own, arrays, vectors.scratch("round", WARP), WARP)
            outside = vectors.outside(own, jnp.asarray(keys), jnp.int32(t), scalars)
            scalars = Counting(WARP, memories, outside).part(region)
            arrays = memories.taken(program.carry.memories)
    for field in fields(found):
        setattr(found, field.name, getattr(found, field.name) / COUNTED)
    _write_down(region, live, found, in_loop=False)
    return found


def _size(region: Region, live: set[int]) -> int:
    return sum(
        id(value) in live and value.op not in ("const", "param", "result")
        for value in region.values
    )


def _bytes(region: Region, live: set[int]) -> int:
    return sum(
        SECTOR if value.args[0].rate == RUN else 4
        for value in region.values
        if value.op in ("load", "store") and id(value) in live and value.param.role == "carry"
    )


def _write_down(region: Region, live: set[int], found: Played, in_loop: bool) -> None:
    found.written_inside += _size(region, live) if in_loop else 0
    found.written_outside += 0 if in_loop else _size(region, live)
    for value in region.values:
        if value.op in ("loop", "switch") and id(value) in live:
            for inner in inner_regions(value.param):
                _write_down(inner, live, found, in_loop or value.op == "loop")
