"""What else the bits of a result depend on: code, versions, and the machine."""

from __future__ import annotations

import os
import platform
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from jaxbio.engine.code.sources import sources
from jaxbio.engine.code.traces import settings
from jaxbio.trees import float_dtype

# Of a CPU: whether products are added unrounded, and how long vectors are.
FEATURES = ("fma", "avx", "avx2", "avx512f", "asimd", "sve", "sve2")
WITHOUT_EFFECT = ("--xla_force_host_platform_device_count", "--xla_dump")  # on bits


def surroundings(*more: str) -> dict[str, Any]:
    """Name -> value. Results are promised to be the same bit for bit only where all of it is.

    more: modules of this package that decide besides those that play (see `sources`).
    """
    return {
        "versions": versions(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "sources": sources(*more),
        "platform": jax.default_backend(),
        "precision": str(jnp.dtype(float_dtype())),
        "machine": platform.machine(),
        "cpu_features": cpu_features(),
        "xla_flags": xla_flags(),
        **settings(),
    }


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Of what decides the bits of a result."""
    return {name: version(name) for name in ("jaxbio", "jax", "jaxlib", "llvmlite", "numpy")}


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
