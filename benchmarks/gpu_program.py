"""What a GPU would do: the kernel of every learner, compiled for devices that are not there.

    python -m benchmarks.gpu_program --target h100 --learner metabio --delay laplace:50,25

Needs `pip install "jax[cuda12]" nvidia-cuda-nvdisasm`, and no device. Nothing is timed. Launches,
instructions, registers and spills are read off the compiled code. Rounds per second are an ESTIMATE
from them, and a cautious one, with the formulas that are printed; how often a round takes its
branches and loops is counted by playing some rounds on the CPU.
"""

import json
import math
import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import gpu_code, machine, measure
from benchmarks.gpu_targets import SCHEDULERS, TARGETS, WARP, Target, sharding_on

HORIZON = 10_000
STOPS = 200
RUNS = 1 << 17
DELAYS = ("fixed:50", "laplace:50,25")
FREE = frozenset("parameter get-tuple-element tuple bitcast constant".split())
FORMULA = (
    "estimate: rounds per second = min(multiprocessors x 4 schedulers x clock x 32 threads / "
    "cycles, bandwidth / bytes). cycles = float32 sums and products x 1 (A100: 2) + special "
    "functions x 8 + memory accesses x 4 + all others x 2, as if no two pipes worked at the same "
    "time, and no warp ever waited. bytes = 4 for an access at a place that runs share, else 32.\n"
    "cautious estimate: the least of these and multiprocessors x 4 schedulers x warps x clock x 32 "
    f"threads / ({gpu_code.WAIT} x instructions + {gpu_code.WAIT_FOR_MEMORY} x reads), as if every "
    "instruction of a warp waited for the one before, and every read for the one before. warps = "
    "those that a scheduler holds with so many registers"
)


def make_delays(text: str) -> Any:
    """fixed:50, laplace:50,25"""
    import jaxbio as jb

    name, _, numbers = text.partition(":")
    kinds = {"fixed": jb.FixedDelay, "laplace": jb.LaplaceDelay}
    return kinds[name](*(int(number) for number in numbers.split(",")))


def make_game(learner: str, delay: str) -> Any:
    import jaxbio as jb
    from jaxbio.engine import round as rounds
    from jaxbio.engine.backends import choice
    from jaxbio.engine.sizing import ring_sizes

    env = jb.make_environment(measure.INSTANCE, delays=make_delays(delay))
    return rounds.make_game(
        env,
        jb.make_learner(learner),
        HORIZON,
        *ring_sizes(env, HORIZON),
        library=np,
        boxes=choice.boxes("pallas"),
    )


def ring_bytes(game: Any) -> int:
    """Of one run: its plays on their way, and what says where they are."""
    import jax

    from jaxbio.engine.round import begin

    leaves = jax.tree.leaves(jax.eval_shape(begin, game).ring)
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in leaves)


def executed(
    code: list[gpu_code.Instruction], played: Any, count: Any = gpu_code.kinds
) -> dict[str, float]:
    """Instructions of a round by kind, as often as they are executed.

    The compiler may have written out a loop: then the code has none, and counts as it is.
    """
    rounds, inner = gpu_code.round_loop(code)
    straight, in_loops = count(code, rounds - inner), count(code, inner)
    return {
        name: straight[name] * played.share + in_loops[name] * played.turns
        for name in {*straight, *in_loops}
    }


# --- one case, in a process of its own: compilers of GPUs may end it


def child(target: Target, learner: str, delay: str, folder: Path) -> dict[str, Any]:
    import jax

    from benchmarks import gpu_rounds
    from jaxbio.engine.backends import choice
    from jaxbio.engine.backends.pallas import Kernel
    from jaxbio.engine.rules import GAME

    game = make_game(learner, delay)
    numbers = jax.tree.leaves(game)
    program = choice.flattened(GAME, game, False)
    kernel, place = Kernel(program), sharding_on(target)
    stops = np.linspace(HORIZON // STOPS, HORIZON, STOPS).astype(np.int32)
    given = kernel.arguments(numbers, np.zeros((2, RUNS), np.uint32), 0, stops)
    types = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(np.shape(x), x.dtype, sharding=place),
        (*given, kernel.state_types(RUNS)),
    )
    compiled = kernel.call.trace(*types).lower(lowering_platforms=("cuda",)).compile()
    ptx = max(folder.glob("*.ptx"), key=lambda path: path.stat().st_size)
    made, played = gpu_code.assembled(ptx), gpu_rounds.counted(program, numbers)
    listings = {"ptx": gpu_code.of_ptx(ptx.read_text())}
    if made.sass is not None:
        listings["sass"] = gpu_code.of_sass(made.sass)
    counts = {name: executed(code, played) for name, code in listings.items()}
    best = "sass" if "sass" in counts else "ptx"
    cycles = gpu_code.cycles(counts[best], target.lanes)
    issue = target.multiprocessors * SCHEDULERS * target.clock * 1e9 * WARP
    bounds = {
        "instructions": issue / cycles,
        "memory": target.bandwidth / played.bytes if played.bytes else None,
    }
    reads = executed(listings[best], played, gpu_code.reads).get("read", 0.0)
    warps = gpu_code.warps_of(made.registers)
    waiting = gpu_code.waiting_cycles(sum(counts[best].values()), reads)
    estimate = min(bound for bound in bounds.values() if bound)
    every = [*program.carry.memories, *program.scratch]
    return {
        "launches": launches(compiled.as_text() or ""),
        "written": {name: len(gpu_code.round_loop(code)[0]) for name, code in listings.items()},
        "executed": {name: round(sum(kinds.values())) for name, kinds in counts.items()},
        "kinds": {name: round(count) for name, count in counts[best].items()},
        "reads": round(reads),
        "registers": made.registers,
        "warps_per_scheduler": warps,
        "spills": made.spills,
        "ring_bytes_per_run": ring_bytes(game),
        "bytes_per_run": sum(m.size * m.dtype.itemsize for m in every)
        + 4 * len(program.carry.scalars),
        "bytes_per_round": played.bytes,
        "estimates": bounds,
        "estimate": estimate,
        "cautious_estimate": min(estimate, warps * issue / waiting),
    }


def launches(text: str) -> int:
    """Of a call: the operations of the entry of a compiled program that do something."""
    entry = text[text.index("\nENTRY") :]
    operations = re.findall(
        r"^\s+(?:ROOT )?%\S+ = (?:\(.*?\)|\S+) ([\w\-]+)\(", entry, re.MULTILINE
    )
    return sum(operation not in FREE for operation in operations)


def in_a_process(target: str, learner: str, delay: str) -> dict[str, Any]:
    """A row of the table; with "failed" instead of figures where the compiler gave up."""
    row = {"target": target, "learner": learner, "delay": delay}
    with tempfile.TemporaryDirectory() as folder:
        flags = f"--xla_gpu_autotune_level=0 --xla_dump_to={folder}"
        try:
            found = measure.in_fresh_process(
                "benchmarks.gpu_program",
                *("--child", folder, "--target", target, "--learner", learner, "--delay", delay),
                XLA_FLAGS=f"{os.environ.get('XLA_FLAGS', '')} {flags}",
                JAX_PLATFORMS="cpu",
                JAX_SKIP_CUDA_CONSTRAINTS_CHECK="1",  # there is no driver
                JAX_ENABLE_COMPILATION_CACHE="false",
            )
        except subprocess.CalledProcessError as error:
            return row | {"failed": f"exit code {error.returncode}"}
    return row | found


HEADER = (
    "learner | delay | target | launches | PTX | SASS | executed | registers | warps | spills | "
    "kB of ring | kB per run | estimated rounds/s | cautiously"
)


def cells(row: dict[str, Any]) -> list[str]:
    named = [row["learner"], row["delay"], row["target"]]
    if "failed" in row:
        return [*named, row["failed"], *["-"] * (len(HEADER.split(" | ")) - 4)]
    code = row["written"]
    return [
        *named,
        str(row["launches"]),
        str(code["ptx"]),
        str(code.get("sass", "-")),
        str(row["executed"].get("sass", row["executed"]["ptx"])),
        str(row["registers"]),
        str(row["warps_per_scheduler"]),
        str(row["spills"]),
        f"{row['ring_bytes_per_run'] / 1e3:.1f}",
        f"{row['bytes_per_run'] / 1e3:.1f}",
        f"{row['estimate']:.1e}",
        f"{row['cautious_estimate']:.1e}",
    ]


def arguments() -> Any:
    import jaxbio as jb

    parser = measure.parser(__doc__, "gpu_program")
    parser.add_argument("--target", nargs="+", default=["h100"], choices=TARGETS)
    parser.add_argument("--learner", nargs="+", default=["all"], metavar="NAME")
    parser.add_argument("--delay", nargs="+", default=list(DELAYS), metavar="fixed:50")
    parser.add_argument("--child", type=Path, help="(internal) where XLA writes its programs")
    options = parser.parse_args()
    if options.learner == ["all"]:
        options.learner = jb.learner_names()
    return options


def main() -> None:
    options = arguments()
    if options.child:
        (target,), (learner,), (delay,) = options.target, options.learner, options.delay
        print(json.dumps(child(TARGETS[target], learner, delay, options.child)))
        return
    print(machine.one_line(), flush=True)
    print(f"\nOne call: {HORIZON} rounds of {RUNS} runs, {STOPS} of them recorded\n")
    rows = []
    for target in options.target:
        for learner in options.learner:
            for delay in options.delay:
                rows.append(in_a_process(target, learner, delay))
                print(f"{' '.join(cells(rows[-1]))}", flush=True)
    print(f"\n{measure.markdown(HEADER, map(cells, rows), left=3)}\n\n{FORMULA}")
    measure.save(options.json, formula=FORMULA, horizon=HORIZON, runs=RUNS, rows=rows)


if __name__ == "__main__":
    main()
