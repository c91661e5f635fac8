"""Every test runs with strict dtype promotion: a silent change of type is an error.

Most of the suite's time is compilation, so programs are compiled with XLA's older and quicker
emitters, where its version is one that has both. What is about the compiled program itself, or
about rounding, is compiled as users do, with `helpers.AS_USERS`.
"""

from __future__ import annotations

import os
from importlib.metadata import version

import jax

QUICK = "--xla_cpu_use_fusion_emitters=false" if version("jaxlib").startswith("0.10.") else ""
os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {QUICK}"  # read at the first compile

jax.config.update("jax_numpy_dtype_promotion", "strict")
