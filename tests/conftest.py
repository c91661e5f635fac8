"""Every test runs with strict dtype promotion: a silent change of type is an error.

Games are machine code through LLVM, compiled as users have it. What is compiled by XLA (rollouts,
and the back-ends that JAX plays) is compiled without optimisation and with XLA's older and quicker
emitters, where its version is one that has both: compilation is most of its time. What is about
rounding, or plays long, is compiled as users do, with `AS_USERS`.

`--sample N` plays one in N cases of tests that are marked `alike`, whose cases differ in the
learner and not in what they ask of Python and JAX: for another version of these.
"""

from __future__ import annotations

import math
import os
import tempfile
import zlib
from collections import defaultdict
from importlib.metadata import version

import jax
import pytest

WORTH_KEEPING = 0.2  # seconds of compilation
QUICKLY = {"xla_backend_optimization_level": 0}  # options of the compiler
AS_USERS = {"xla_backend_optimization_level": 3}
if version("jaxlib").startswith("0.10."):
    QUICKLY |= {"xla_cpu_use_fusion_emitters": False}
    AS_USERS |= {"xla_cpu_use_fusion_emitters": True}
flags = [f"--{name}={str(value).lower()}" for name, value in QUICKLY.items()]
# Read when the first program is compiled, and by processes that tests start.
os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *flags])

jax.config.update("jax_numpy_dtype_promotion", "strict")


def pytest_configure(config: pytest.Config) -> None:
    """What one worker of xdist has compiled, the others need not: they share a folder, which is
    not the user's own.
    """
    if not hasattr(config, "workerinput"):
        folder = tempfile.TemporaryDirectory(prefix="jaxbio-programs-", ignore_cleanup_errors=True)
        config.add_cleanup(folder.cleanup)
        os.environ["XDG_CACHE_HOME"] = folder.name  # of machine code
        programs = os.path.join(folder.name, "xla")
        os.environ["JAX_COMPILATION_CACHE_DIR"] = programs
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = str(WORTH_KEEPING)
        jax.config.update("jax_compilation_cache_dir", programs)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", WORTH_KEEPING)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--sample", type=int, default=1, help="of cases alike one in so many")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """As good as random, so that all that varies is there, and the same for all workers."""
    share, cases = config.option.sample, defaultdict(list)
    for item in items:
        if item.get_closest_marker("alike"):
            cases[item.nodeid.split("[")[0]].append(item)
    left_out = set()
    for alike in cases.values():
        alike.sort(key=lambda item: zlib.crc32(item.nodeid.encode()))
        left_out |= set(alike[math.ceil(len(alike) / share) :])
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]
