"""What else the bits of a result depend on: code, versions, and the machine."""

from __future__ import annotations

import hashlib
import os
import platform
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from jaxbio import kernel
from jaxbio.core import float_dtype

# Parts of the package that draw, print or only call sweeps.
DECIDE_NOTHING = (
    "cli", "__main__", "commands", "experiments", "figures", "lab", "plot", "report"
)  # fmt: skip
# Of a CPU: whether products are added unrounded, and how long vectors are.
FEATURES = ("fma", "avx", "avx2", "avx512f", "asimd", "sve", "sve2")
WITHOUT_EFFECT = ("--xla_force_host_platform_device_count", "--xla_dump")  # on bits


def surroundings() -> dict[str, Any]:
    """Name -> value. Results are promised to be the same bit for bit only where all of it is."""
    return {
        "versions": versions(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "sources": sources(),
        "platform": jax.default_backend(),
        "precision": str(jnp.dtype(float_dtype())),
        "loops": "native" if kernel.is_available() else "plain",
        "machine": platform.machine(),
        "cpu_features": cpu_features(),
        "xla_flags": xla_flags(),
    }


def versions() -> dict[str, str]:
    """Of what decides the bits of a result."""
    return {name: version(name) for name in ("jaxbio", "jax", "jaxlib", "numpy")}


@lru_cache(maxsize=1)
def sources() -> str:
    """A digest of the code of this package that plays: a version under development changes."""
    code = hashlib.sha256()
    for file in _files():
        code.update(file.as_posix().encode() + b"\0")
        code.update((_ROOT / file).read_bytes().replace(b"\r\n", b"\n"))
    return code.hexdigest()[:16]


_ROOT = Path(__file__).parent


def _files() -> list[Path]:
    files = (file.relative_to(_ROOT) for file in _ROOT.rglob("*.py"))
    return sorted(file for file in files if file.with_suffix("").parts[0] not in DECIDE_NOTHING)


@lru_cache(maxsize=1)
def cpu_features(file: str = "/proc/cpuinfo") -> str:
    """Those that change how numbers are rounded or summed, where the system tells."""
    try:
        text = Path(file).read_text()
    except OSError:
        return "unknown"
    for line in text.splitlines():
        name, _, found = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return " ".join(feature for feature in FEATURES if feature in found.split()) or "none"
    return "unknown"


def xla_flags() -> str:
    """In order, without those that say how many devices to make or what to write down."""
    given = os.environ.get("XLA_FLAGS", "").split()
    return " ".join(sorted(flag for flag in given if not flag.startswith(WITHOUT_EFFECT))) or "none"
