"""Every test runs with strict dtype promotion: a silent change of type is an error.

Most of the suite's time is compilation, so programs are compiled with little optimisation and with
XLA's older and quicker emitters, where its version is one that has both. What is about the compiled
program itself, or about rounding, is compiled as users do, with `AS_USERS`.
"""

from __future__ import annotations

import os
from importlib.metadata import version

import jax

QUICK = {"xla_backend_optimization_level": 1}
AS_USERS = {"xla_backend_optimization_level": 3}  # options of the compiler
if version("jaxlib").startswith("0.10."):
    QUICK |= {"xla_cpu_use_fusion_emitters": False}
    AS_USERS |= {"xla_cpu_use_fusion_emitters": True}
flags = [f"--{name}={str(value).lower()}" for name, value in QUICK.items()]
os.environ["XLA_FLAGS"] = " ".join([os.environ.get("XLA_FLAGS", ""), *flags])  # at first compile

jax.config.update("jax_numpy_dtype_promotion", "strict")
