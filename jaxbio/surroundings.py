"""What else the bits of a result depend on: code, versions, and the machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from jaxbio import kernel
from jaxbio.core import float_dtype
from jaxbio.sources import sources

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
        "loops": "native" if kernel.is_available() else "plain",
        "machine": platform.machine(),
        "cpu_features": cpu_features(),
        "xla_flags": xla_flags(),
    }


def versions() -> dict[str, str]:
    """Of what decides the bits of a result."""
    return {name: version(name) for name in ("jaxbio", "jax", "jaxlib", "numpy")}


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


def free_memory(root: Path = Path("/")) -> float:
    """Bytes that this process may still take: of the machine, and of its control groups."""
    return min([float("inf"), *_of_the_machine(root), *_of_the_groups(root)])


def _of_the_machine(root: Path) -> Iterator[float]:
    for line in _lines(root / "proc/meminfo"):
        if line.startswith("MemAvailable"):
            yield 1024.0 * int(line.split()[1])


def _of_the_groups(root: Path) -> Iterator[float]:
    """Of version 2 and version 1; a limit of any group above ours counts too."""
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if not controllers:
            names = ("memory.max", "memory.current", "inactive_file")
            mounts = [root / "sys/fs/cgroup", root / "sys/fs/cgroup/unified"]
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            mounts = [root / "sys/fs/cgroup/memory"]
        else:
            continue
        own = Path(path.lstrip("/"))
        for mount in mounts:
            for group in (own, *own.parents):
                yield from _left(mount / group, *names)


def _left(group: Path, limit: str, used: str, reclaimable: str) -> Iterator[float]:
    """The limit less what is used; pages of files that nobody uses can be had back."""
    texts = [(_lines(group / name) or [""])[0] for name in (limit, used)]
    if all(text.isdecimal() for text in texts):
        most, taken = (float(text) for text in texts)
        back = [line.split()[1] for line in _lines(group / "memory.stat") if
                line.split()[:1] == [reclaimable]]  # fmt: skip
        yield max(0.0, most - taken + sum(float(count) for count in back))


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
