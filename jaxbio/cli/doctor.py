"""jaxbio doctor: what this machine plays with, whether it plays right, and how fast."""

from __future__ import annotations

import platform
import sys
import time
import warnings
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import jax
import numpy as np

from jaxbio.engine.backends import choice
from jaxbio.engine.backends.pallas import DIFFERENT
from jaxbio.engine.player import compile_player
from jaxbio.engine.round import make_game
from jaxbio.engine.sizing import ring_sizes
from jaxbio.environment.delays import FixedDelay
from jaxbio.environment.instances import make_environment
from jaxbio.learners.registry import LEARNERS, make_learner
from jaxbio.studies import parsing
from jaxbio.sweeps.simulate import simulate

PACKAGES = ("jaxbio", "jax", "jaxlib", "llvmlite", "numpy")
CHECKED = "metabio"  # played by its back-end and by the definition
SMALL = {"horizon": 200, "runs": 32}
TIMED = {"horizon": 2_000, "runs": 4_096}
ON_GPU = {"horizon": 2_000, "runs": 131_072}


def add(commands: Any) -> None:
    def command(options: Any) -> tuple[Any, str]:
        names = options.learners or all_names()
        shown = None if options.quiet else lambda name: print(f"{name} ...", file=sys.stderr)
        found = examine(names, shown)
        return found, as_text(found)

    about = "versions, devices, back-ends, a self-check and rounds per second"
    parser = parsing.add_command(commands, "doctor", about, command, "jaxbio doctor metabio ucb1")
    parser.add_argument("learners", nargs="*", metavar="LEARNER", help="names (default: all)")


def examine(names: list[str], progress: Any = None) -> dict[str, Any]:
    """Versions, devices, the self-check, and for each learner the back-end that plays it, why that
    one, and rounds per second.

    progress: called with each name before it is played.
    """
    for name in names:  # before anything is played
        make_learner(name)
    found: dict[str, Any] = {
        "python": platform.python_version(),
        "system": f"{platform.system()} on {platform.machine()}",
        "packages": {name: _version(name) for name in PACKAGES},
        "devices": [f"{device.platform}: {device.device_kind}" for device in jax.local_devices()],
        "self-check": check(),
        "learners": {},
    }
    for name in names:
        if progress is not None:
            progress(name)
        found["learners"][name] = measure(name)
    return found


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def check() -> str:
    """Does the back-end of this machine play as `jax.vmap` of the step does?

    Where both are made by the compiler of a GPU, one run in DIFFERENT may differ: see `pallas`.
    """
    env, learner = _environment(), make_learner(CHECKED)
    with warnings.catch_warnings():  # what they say is told beside each learner
        warnings.simplefilter("ignore", RuntimeWarning)
        mine, theirs = (
            simulate(env, learner, **SMALL, progress=False, backend=one) for one in (None, "vmap")
        )
    close = np.isclose(mine.final_regret, theirs.final_regret, rtol=1e-5, atol=1e-5)
    allowed = 0 if mine.backend == "llvm" else len(close) // DIFFERENT
    said = f"{close.sum()} of {len(close)} runs of {CHECKED} by {mine.backend} are those of vmap"
    return f"{'ok' if (~close).sum() <= allowed else 'LOOK AT THIS'}: {said}"


def measure(name: str) -> dict[str, Any]:
    """The back-end of a learner, why that one, seconds to compile, rounds per second."""
    env, learner = _environment(), make_learner(name)
    size = TIMED if choice.platform() == "cpu" else ON_GPU
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        first, result = _timed(env, learner, size)
    again, _ = _timed(env, learner, size)
    why = why_this_one(env, learner, size["horizon"])
    texts = [str(one.message) for one in said]
    others = [text for text in texts if not text.startswith((choice.SLOWER, choice.NO_KERNEL))]
    return {
        "backend": result.backend,
        "why": "; ".join([why, *others]),
        "compile_seconds": max(0.0, first - again),
        "rounds_per_second": size["runs"] * size["horizon"] / again,
    }


def why_this_one(env: Any, learner: Any, horizon: int) -> str:
    """Why `simulate` plays with the back-end that it has chosen, on the first device."""
    sizes = ring_sizes(env, horizon)
    game = make_game(env, learner, horizon, *sizes, library=np, boxes=choice.boxes(None))
    with jax.default_device(jax.local_devices()[0]):
        return compile_player(game).why


def _timed(env: Any, learner: Any, size: dict[str, Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = simulate(env, learner, **size, rounds=1, progress=False)
    return time.perf_counter() - begun, result


def _environment() -> Any:
    return make_environment("paper-stochastic", delays=FixedDelay(50))


def all_names() -> list[str]:
    return list(LEARNERS)


def as_text(found: dict[str, Any]) -> str:
    packages = ", ".join(f"{name} {value}" for name, value in found["packages"].items())
    width = max(len(name) for name in found["learners"])
    lines = [
        f"Python {found['python']}, {found['system']}",
        packages,
        f"devices: {', '.join(found['devices'])}",
        f"self-check: {found['self-check']}",
        "",
        f"{'learner':<{width}}  back-end  compile s  rounds/s  why",
    ]
    for name, one in found["learners"].items():
        line = f"{name:<{width}}  {one['backend']:<8}  {one['compile_seconds']:9.1f}  "
        lines.append(f"{line}{one['rounds_per_second']:8.2g}  {one['why']}")
    lines += ["", "Rounds per second of all runs together: paper-stochastic, fixed delay 50"]
    return "\n".join(lines)
