"""The command line: `jaxbio`, also `python -m jaxbio`.

Exit codes: 0 done, 1 failed, 2 wrong use, 130 interrupted, 141 nobody reads what it prints.
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import shtab

from jaxbio import __version__, checks
from jaxbio.analysis.tune import tune
from jaxbio.cli import bounds, doctor, listing, run, starting, sweep_file, tuning
from jaxbio.learners.exp3 import TUNINGS
from jaxbio.storage import netcdf
from jaxbio.studies import outputs
from jaxbio.studies.advise import command as advise
from jaxbio.studies.advise.study import advise as play_advice
from jaxbio.studies.beyond import command as beyond
from jaxbio.studies.beyond.study import play_beyond
from jaxbio.studies.families import FAMILIES, GETS, SIGNATURE
from jaxbio.studies.guarantees import command as guarantees
from jaxbio.studies.guarantees.study import check_guarantees
from jaxbio.studies.paper import command as reproduce
from jaxbio.studies.paper.experiment import Options
from jaxbio.studies.phase import command as phase
from jaxbio.studies.phase.study import phase_diagram
from jaxbio.studies.rates import command as rates
from jaxbio.studies.rates.series import VALUES
from jaxbio.studies.rates.study import measure_rates
from jaxbio.studies.regimes import command as regimes
from jaxbio.studies.regimes.study import play_delays, play_regimes
from jaxbio.sweeps.simulate import simulate

USAGE, INTERRUPTED, UNREAD = 2, 130, 141
PICTURES = (".png", ".pdf", ".svg")
EXPECTED = (ValueError, TypeError, MemoryError, OSError, RuntimeError)
LONGEST = 500  # letters of what the parser says


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = argparse.Namespace(debug="--debug" in given)
    try:
        starting.over()
        known = parser()
        for one in given:
            if one.startswith("--") and one.endswith("=--"):  # which argparse takes for a list
                known.error(f"argument {one[:-3]}: '--' is no value")
        options = known.parse_args(given)
        _keep_programs()
        outputs.try_places(options)
        options.command(options)
        sys.stdout.flush()
    except BrokenPipeError:  # as with `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still to flush
        return UNREAD
    except KeyboardInterrupt as interrupt:
        notes = getattr(interrupt, "__notes__", []) or _kept(options)
        again = [f"resume with: {shlex.join(['jaxbio', *given])}"] if notes else []
        print("\n" + "; ".join(["interrupted", *notes, *again]), file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if options.debug:
            raise
        print(f"jaxbio: {_said(error)}", file=sys.stderr)
        return USAGE if isinstance(error, ValueError | TypeError) else 1
    return 0


def _said(error: Exception) -> str:
    """An error in one line."""
    notes = "; ".join(getattr(error, "__notes__", []))
    text = str(error) or ("out of memory" if isinstance(error, MemoryError) else "")
    if not isinstance(error, EXPECTED):  # a defect, of ours or of a function of the user's
        text = f"{type(error).__name__}: {text} (unexpected: --debug shows where)"
    return _line(f"{text} ({notes})" if notes else text)


def _line(text: str) -> str:
    return " ".join(text.split())


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and not how everything is used."""

    def error(self, message: str) -> NoReturn:
        shown = message if len(message) <= LONGEST else f"{message[:LONGEST]}..."
        self.exit(USAGE, f"{self.prog}: {_line(shown)} (see {self.prog} --help)\n")


def _kept(options: Any) -> list[str]:
    """What remains of a command that is interrupted between the parts of its study."""
    folder = getattr(options, "folder", None)
    return [] if folder is None else [f"finished parts are in {folder}"]


def _keep_programs() -> None:
    """Keep compiled programs between calls, unless the user has decided otherwise."""
    import jax

    if getattr(jax.config, "jax_compilation_cache_dir", None) is None:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        jax.config.update("jax_compilation_cache_dir", str(base / "jaxbio"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def parser() -> argparse.ArgumentParser:
    whole = _Parser(
        prog="jaxbio",
        description="Delayed bandits with intermediate observations, many games side by side.",
        epilog="examples:\n"
        "  jaxbio list\n"
        "  jaxbio reproduce 1\n"
        "  jaxbio run paper-stochastic dada-exp3 metabio --delay laplace:50,25\n"
        "  jaxbio theory --actions 8 --states 12 --horizon 100000 --delay 50\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument("--version", action="version", version=f"jaxbio {__version__}")
    shtab.add_argument_to(whole, "--print-completion", help="print a shell's completion script")
    commands = whole.add_subparsers(required=True, metavar="command")
    _add_list(commands)
    _add_run(commands)
    _add_reproduce(commands)
    _add_sweep(commands)
    _add_tune(commands)
    _add_theory(commands)
    _add_advise(commands)
    _add_phase(commands)
    _add_regimes(commands)
    _add_beyond(commands)
    _add_guarantees(commands)
    _add_rates(commands)
    _add_bench(commands)
    _add_doctor(commands)
    return whole


def _add(
    commands: Any, name: str, about: str, command: Callable[[Any], None], example: str
) -> argparse.ArgumentParser:
    made = commands.add_parser(
        name,
        help=about,
        description=about,
        epilog=f"example:\n  {example}\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.set_defaults(command=command)
    made.add_argument("--json", action="store_true", help="print JSON")
    made.add_argument("--quiet", action="store_true", help="no progress")
    made.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return made


def _show(found: Any, text: str, options: Any) -> None:
    print(json.dumps(_plain(found), indent=2, allow_nan=False) if options.json else text)


def _plain(found: Any) -> Any:
    """The same with None for numbers that JSON has no words for."""
    if isinstance(found, dict):
        return {name: _plain(value) for name, value in found.items()}
    if isinstance(found, list | tuple):
        return [_plain(value) for value in found]
    return None if isinstance(found, float) and not math.isfinite(found) else found


def _add_list(commands: Any) -> None:
    def command(options: Any) -> None:
        found = listing.everything()
        _show(found, listing.as_text(found), options)

    _add(commands, "list", "environments, learners, experiments", command, "jaxbio list --json")


def _add_doctor(commands: Any) -> None:
    def command(options: Any) -> None:
        names = options.learners or doctor.all_names()
        shown = None if options.quiet else lambda name: print(f"{name} ...", file=sys.stderr)
        found = doctor.examine(names, shown)
        _show(found, doctor.as_text(found), options)

    about = "versions, devices, back-ends, a self-check and rounds per second"
    parser = _add(commands, "doctor", about, command, "jaxbio doctor metabio ucb1")
    parser.add_argument("learners", nargs="*", metavar="LEARNER", help="names (default: all)")


def _add_run(commands: Any) -> None:
    def command(options: Any) -> None:
        results = run.play(options)
        found, compared = run.summary(results), run.comparison(results)
        text = run.table(found)
        if compared is not None:
            found, text = found | {"comparison": compared.to_dict()}, f"{text}\n\n{compared}"
        if options.figure is not None:
            from jaxbio.figures.lines import regret_curves  # matplotlib takes a while to import
            from jaxbio.figures.saving import save_as

            save_as(regret_curves(results, options.environment), options.figure)
        _show(found, text, options)

    made = _add(
        commands,
        "run",
        "play learners on a problem",
        command,
        "jaxbio run paper-utility dada-exp3 metabio:delta=0.05 --set states 8 --figure out.png",
    )
    known = listing.everything()
    made.add_argument("environment", choices=list(known["environments"]), metavar="ENVIRONMENT")
    made.add_argument("learners", nargs="+", metavar="LEARNER", help="a name, or name:option=value")
    made.add_argument("--set", nargs=2, action="append", metavar=("OPTION", "VALUE"))
    made.add_argument("--delay", help="50, laplace:50,25, geometric:20 or uniform:0,100")
    _numbers(made, simulate)
    _figure(made)


def _figure(made: argparse.ArgumentParser) -> None:
    figure = made.add_argument("--figure", type=_picture, help="where to save a figure")
    figure.complete = shtab.FILE  # type: ignore[attr-defined]


def _path(text: str) -> Path:
    try:
        return checks.path("the name", text)
    except TypeError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _picture(text: str) -> Path:
    path = _path(text)
    if path.suffix not in PICTURES:
        raise argparse.ArgumentTypeError(f"{text!r} must end in one of {', '.join(PICTURES)}")
    return path


def _option(
    made: argparse.ArgumentParser,
    flag: str,
    function: Callable[..., Any],
    about: str,
    name: str = "",
    **how: Any,
) -> None:
    """An option with the default of the Python function that it is handed to: declared there, once.

    name: of the function's argument, where it is not that of the flag.
    """
    known = inspect.signature(function).parameters[name or flag[2:].replace("-", "_")].default
    several = isinstance(known, tuple)
    shown = " ".join(map(str, known)) if several else known
    given = {"nargs": "+", "default": list(known)} if several else {"default": known}
    made.add_argument(flag, help=f"{about} ({shown})", **given, **how)


def _horizon(made: argparse.ArgumentParser) -> None:
    """Python functions of a problem ask for T; on the command line it is that of the paper."""
    _option(made, "--horizon", Options, "rounds T", type=int)


def _numbers(made: argparse.ArgumentParser, function: Callable[..., Any]) -> None:
    _horizon(made)
    _option(made, "--runs", function, "independent runs", type=int)
    _option(made, "--seed", function, "root seed", type=int)


def _add_reproduce(commands: Any) -> None:
    def command(options: Any) -> None:
        wanted = reproduce.numbers(options.experiments)
        found = [reproduce.reproduce(number, options) for number in wanted]
        _show(found, reproduce.as_text(found, options.folder), options)

    made = _add(
        commands,
        "reproduce",
        "play the paper's experiments; figures, verdicts, a report",
        command,
        "jaxbio reproduce 1 4 --runs 100",
    )
    choices = [*listing.everything()["experiments"], "all"]
    which = f"{', '.join(choices)} (all)"
    made.add_argument(
        "experiments", nargs="*", choices=choices, default="all", metavar="EXPERIMENT", help=which
    )
    made.add_argument("--folder", type=_path, default=Path("results/paper"), help="of the report")
    _numbers(made, Options)
    _option(made, "--delta", Options, "confidence", type=float)
    _option(made, "--tuning", Options, "of DAda-Exp3", choices=TUNINGS)
    _option(made, "--rounds", Options, "recorded rounds", type=int)
    made.add_argument(
        "--sensitivity", action="store_true", help="verdicts under what the paper leaves open"
    )


def _add_sweep(commands: Any) -> None:
    def command(options: Any) -> None:
        config = sweep_file.read(options.config)
        output = sweep_file.output(config, options.config)
        data = sweep_file.play(config, progress=not options.quiet)
        netcdf.save(data, output)
        found = {"output": str(output), "sizes": {str(k): v for k, v in data.sizes.items()}}
        _show(found, f"{output}: {dict(data.sizes)}", options)

    made = _add(
        commands, "sweep", "play the grid of a TOML file", command, "jaxbio sweep grid.toml"
    )
    made.description = sweep_file.__doc__
    config = made.add_argument("config", type=_path, metavar="CONFIG.toml")
    config.complete = shtab.FILE  # type: ignore[attr-defined]


def _add_tune(commands: Any) -> None:
    def command(options: Any) -> None:
        found = tuning.play(options)
        if options.figure is not None:
            from jaxbio.figures.saving import save_as
            from jaxbio.figures.tuning import tuning as drawn

            save_as(drawn(found, tuning.title(options)), options.figure)
        _show(found.to_dict(), str(found), options)

    made = _add(
        commands,
        "tune",
        "search for hyperparameters of a learner; held-out comparison with the start values",
        command,
        "jaxbio tune paper-stochastic metabio --param scale=1 --param radius_scale=1 --delay 50",
    )
    made.add_argument(
        "environment", choices=list(listing.everything()["environments"]), metavar="ENVIRONMENT"
    )
    made.add_argument("learner", metavar="LEARNER", help="a name, or name:option=value")
    made.add_argument(
        "--param", action="append", required=True, metavar="NAME=VALUE", help="where to begin"
    )
    made.add_argument("--set", nargs=2, action="append", metavar=("OPTION", "VALUE"))
    made.add_argument("--delay", help="50, laplace:50,25, geometric:20 or uniform:0,100")
    _numbers(made, tune)
    _option(made, "--steps", tune, "of the search", type=int)
    _option(made, "--held-out", tune, "runs of the comparison", type=int)
    _folder(made, "tune")
    _store(made)
    _figure(made)


def _add_theory(commands: Any) -> None:
    def command(options: Any) -> None:
        found = bounds.evaluate(options)
        _show(found, bounds.as_text(found), options)

    made = _add(
        commands,
        "theory",
        "the paper's bounds, and which learner they recommend",
        command,
        "jaxbio theory --actions 8 --states 12 --horizon 100000 --delay laplace:50,25",
    )
    _problem(made)
    _option(made, "--delta", Options, "confidence", type=float)


def _add_advise(commands: Any) -> None:
    def command(options: Any) -> None:
        found = advise.ask(options)
        if options.figure is not None:
            advise.draw(found, options)
        _show(advise.as_dict(found), advise.as_text(found, options.family), options)

    made = _add(
        commands,
        "advise",
        "a learner for a problem of this size, found by playing it",
        command,
        "jaxbio advise --actions 8 --states 12 --horizon 100000 --delay laplace:50,25",
    )
    _problem(made)
    _family(made, play_advice)
    made.add_argument("--learners", nargs="+", metavar="LEARNER", help="instead of the usual five")
    spent = "of play, at most, beside the time that compiling takes"
    _option(made, "--seconds", play_advice, spent, type=float)
    _option(made, "--seed", play_advice, "root seed", type=int)
    place = f"of finished parts (by default below {advise.STORES}): the same command goes on"
    made.add_argument("--store", type=_path, help=place)
    made.set_defaults(folder=advise.STORES)
    _figure(made)


def _problem(made: argparse.ArgumentParser) -> None:
    made.add_argument("--actions", type=int, required=True, help="K")
    made.add_argument("--states", type=int, required=True, help="S")
    _horizon(made)
    made.add_argument("--delay", default="50", help="50, laplace:50,25, ... (50)")


def _add_study(
    commands: Any,
    name: str,
    about: str,
    study: Callable[[Any], Any],
    example: str,
    function: Callable[..., Any],
) -> argparse.ArgumentParser:
    """A command that plays a study (options -> what is found, and as text) into a folder.

    function: of Python that does the same, whose defaults it has.
    """

    def command(options: Any) -> None:
        found, text = study(options)
        _show(found, text, options)

    made = _add(commands, name, about, command, example)
    _option(made, "--runs", function, "at each point", type=int)
    _option(made, "--seed", function, "root seed", type=int)
    _folder(made, name)
    return made


def _folder(made: argparse.ArgumentParser, name: str) -> None:
    folder = Path("results") / name
    made.add_argument("--folder", type=_path, default=folder, help=f"of what is made ({folder})")


def _store(made: argparse.ArgumentParser) -> None:
    about = "of finished parts: the same command goes on (of a study: in its folder)"
    made.add_argument("--store", type=_path, help=about)


def _fixed(made: argparse.ArgumentParser, function: Callable[..., Any]) -> None:
    _option(made, "--horizon", function, "rounds T", type=int)
    _option(made, "--delay", function, "d", type=int)


def _family(made: argparse.ArgumentParser, function: Callable[..., Any]) -> None:
    own = f"module:function of {SIGNATURE}, {GETS}, that makes an Environment"
    _option(made, "--family", function, f"{', '.join(FAMILIES)}, or {own}")


def _add_phase(commands: Any) -> None:
    about = "where intermediate observations help, over states and delays"
    example = "jaxbio phase --grid full --runs 300"
    made = _add_study(commands, "phase", about, phase.study, example, phase_diagram)
    made.add_argument("--grid", choices=list(phase.GRIDS), default="small", help="of S and d")
    _family(made, phase_diagram)
    _option(made, "--actions", phase_diagram, "K", type=int)
    _option(made, "--horizon", phase_diagram, "rounds T", "horizons", type=int)


def _add_regimes(commands: Any) -> None:
    about = "mappings and losses, each stochastic or adversarial"
    example = "jaxbio regimes --runs 200 --delay 200"
    made = _add_study(commands, "regimes", about, regimes.study, example, play_regimes)
    _fixed(made, play_regimes)
    _option(made, "--delays", play_delays, "of the 2nd figure", type=int)


def _add_beyond(commands: Any) -> None:
    about = "mappings that change, an unknown horizon, unknown states"
    example = "jaxbio beyond --runs 200"
    made = _add_study(commands, "beyond", about, beyond.study, example, play_beyond)
    _fixed(made, play_beyond)
    _option(made, "--changes", play_beyond, "of the mapping", type=int)
    _option(made, "--memories", play_beyond, "after which learners forget, in phases", type=float)


def _add_guarantees(commands: Any) -> None:
    about = "test the theorems' bounds against many runs"
    example = "jaxbio guarantees --runs 100000 --deltas 0.1 0.01 0.001"
    made = _add_study(commands, "guarantees", about, guarantees.study, example, check_guarantees)
    names = list(listing.everything()["environments"])
    made.add_argument("--environment", choices=names, default="paper-utility", metavar="NAME")
    made.add_argument("--set", nargs=2, action="append", metavar=("OPTION", "VALUE"))
    made.add_argument("--delay", help="50, laplace:50,25, ...; random ones are drawn once")
    _option(made, "--horizons", check_guarantees, "of the games", type=int, metavar="T")
    _option(made, "--deltas", check_guarantees, "of the theorems", type=float)
    _store(made)


def _add_rates(commands: Any) -> None:
    about = "how regret grows with T, S, d and K, beside the paper's rates"
    example = "jaxbio rates --runs 4000 --horizon 32000"
    made = _add_study(commands, "rates", about, rates.study, example, measure_rates)
    for name in VALUES:
        _option(made, f"--{name}", measure_rates, "along this axis", type=int)
    _option(made, "--horizon", measure_rates, "T elsewhere", type=int)
    _option(made, "--delta", measure_rates, "confidence", type=float)
    _store(made)


def _add_bench(commands: Any) -> None:
    def command(options: Any) -> None:
        root = Path(__file__).parents[2]
        if not (root / "benchmarks" / "throughput.py").exists():
            raise ValueError("the benchmarks are part of the repository, not of the package")
        done = subprocess.run([sys.executable, "-m", f"benchmarks.{options.script}"], cwd=root)
        if done.returncode:
            raise RuntimeError(f"benchmarks.{options.script} ended with {done.returncode}")

    made = _add(commands, "bench", "run a benchmark", command, "jaxbio bench throughput")
    scripts = ("throughput", "scaling", "memory", "compile_time", "program", "experiment1")
    made.add_argument("script", nargs="?", default="throughput", choices=scripts)
