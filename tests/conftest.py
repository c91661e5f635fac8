"""Every test runs with strict dtype promotion: a silent change of type is an error.

Most of the suite's time is compilation, so programs are compiled without optimisation and with
XLA's older and quicker emitters, where its version is one that has both. What is about the compiled
program itself or about rounding, and what plays long, is compiled as users do, with `AS_USERS`.
"""

from __future__ import annotations

import os
from importlib.metadata import version

import jax

QUICKLY = {"xla_backend_optimization_level": 0}  # options of the compiler
AS_USERS = {"xla_backend_optimization_level": 3}
if version("jaxlib").startswith("0.10."):
    QUICKLY |= {"xla_cpu_use_fusion_emitters": False}
    AS_USERS |= {"xla_cpu_use_fusion_emitters": True}
flags = [f"--{name}={str(value).lower()}" for name, value in QUICKLY.items()]
# Read when the first program is compiled, and by processes that tests start.
os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *flags])

jax.config.update("jax_numpy_dtype_promotion", "strict")
