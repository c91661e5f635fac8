"""Every test runs with strict dtype promotion: a silent change of type is an error.

Most of the suite's time is compilation, so programs are compiled with XLA's older and quicker
emitters, where its version is one that has both. What is about the compiled program itself, or
about rounding, is compiled as users do, with `AS_USERS`.
"""

from __future__ import annotations

import os
from importlib.metadata import version

import jax

HAS_BOTH = version("jaxlib").startswith("0.10.")
AS_USERS = {"xla_cpu_use_fusion_emitters": True} if HAS_BOTH else {}  # options of the compiler
if HAS_BOTH:  # read when the first program is compiled
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_use_fusion_emitters=false"

jax.config.update("jax_numpy_dtype_promotion", "strict")
