"""What a benchmark ran on, without anything that names the machine."""

import importlib.metadata
import os
import platform
from pathlib import Path


def cpu_model():
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def describe():
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        **{name: version(name) for name in ("jax", "jaxlib", "llvmlite", "numba", "numpy")},
    }


def one_line():
    facts = describe()
    packages = ", ".join(
        f"{name} {facts[name] or 'not installed'}"
        for name in ("python", "jax", "jaxlib", "llvmlite", "numba", "numpy")
    )
    return f"{facts['cpu']}, {facts['cores']} cores, {facts['system']}; {packages}"
