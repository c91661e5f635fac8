"""Kernels and bytes per round in the compiled loop of every learner.

    python -m benchmarks.program [--width 128] [--learners metabio ucb1]

Nothing is timed: the optimised programs that XLA leaves behind are read (see hlo.py). In the
ordinary form every kernel is run by itself, as on a GPU, where each is a launch; this is what a CPU
does too with JAXBIO_NATIVE_LOOPS=0. In the native form, the default on CPU, the loop is one
function, and the number is that of the pieces it is made of. Learners with no native form run
kernel by kernel everywhere. What is drawn or measured outside the loop over rounds is not counted.
"""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import machine, measure
from benchmarks.hlo import Program

FORMS = {"native": "1", "ordinary": "0"}  # values of JAXBIO_NATIVE_LOOPS
DUMPED = "*cpu_after_optimizations.txt"


def optimised(directory: Path, known: set[Path]) -> Program:
    """The largest program written since the files in `known`."""
    new = set(directory.glob(DUMPED)) - known
    return Program(max(new, key=lambda path: path.stat().st_size).read_text())


def child(directory: Path, width: int, learners: list[str]) -> None:
    """Compile every case in this process; print its costs per round as JSON."""
    rows = []
    for learner in learners:
        for name in measure.DELAYS:
            known = set(directory.glob(DUMPED))
            delays = measure.make_delays(name)
            measure.simulate(learner, delays, horizon=100, runs=width, width=width)
            program = optimised(directory, known)
            cost = program.round()
            row = {"learner": learner, "delays": name, "native": program.is_native}
            rows.append(row | {"kernels": cost.kernels, "bytes_per_run": cost.bytes / width})
    print(json.dumps(rows))


def costs(form: str, width: int, learners: list[str]) -> list[dict[str, Any]]:
    """Of all cases in one form, in a process of its own."""
    with tempfile.TemporaryDirectory() as directory:
        flags = f"--xla_dump_to={directory} --xla_dump_hlo_as_text"
        return measure.in_fresh_process(
            "benchmarks.program",
            *("--child", directory, "--width", width, "--learners", *learners),
            XLA_FLAGS=f"{os.environ.get('XLA_FLAGS', '')} {flags}",
            JAXBIO_NATIVE_LOOPS=FORMS[form],
            JAX_ENABLE_COMPILATION_CACHE="false",  # a program from a cache leaves no text behind
        )


def table(results: dict[str, list[dict[str, Any]]]) -> str:
    rows = []
    for native, ordinary in zip(results["native"], results["ordinary"], strict=True):
        pieces = (f"{native['kernels']:.0f}", f"{native['bytes_per_run']:.0f}")
        rows.append(
            (
                native["learner"],
                native["delays"],
                *(pieces if native["native"] else ("-", "-")),
                f"{ordinary['kernels']:.0f}",
                f"{ordinary['bytes_per_run']:.0f}",
            )
        )
    header = "learner | delays | native: pieces | bytes per run | ordinary: kernels | bytes per run"
    return measure.markdown(header, rows, left=2)


def arguments() -> Any:
    import jaxbio as jb

    parser = measure.parser(__doc__, "program")
    parser.add_argument("--width", type=int, default=128, help="runs side by side")
    parser.add_argument("--learners", nargs="+", default=jb.learner_names())
    parser.add_argument("--child", type=Path, help="(internal) where XLA writes its programs")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    if options.child:
        child(options.child, options.width, options.learners)
        return
    print(machine.one_line(), flush=True)
    results = {form: costs(form, options.width, options.learners) for form in FORMS}
    print(f"\nOne round of {options.width} runs\n\n{table(results)}")
    measure.save(options.json, width=options.width, results=results)


if __name__ == "__main__":
    main()
