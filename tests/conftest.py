"""Every test runs with strict dtype promotion: a silent change of type is an error."""

from __future__ import annotations

import jax

jax.config.update("jax_numpy_dtype_promotion", "strict")
