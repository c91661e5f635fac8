"""What an agent runs on: machine code where there is some, else `jax.jit`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from jaxbio import checks
from jaxbio.engine.flatten import CannotFlatten
from jaxbio.serving.compiled import Compiled
from jaxbio.serving.jitted import Jitted
from jaxbio.serving.lanes import LANES
from jaxbio.serving.mind import Mind

BACKENDS = (Compiled.name, Jitted.name)
READY = LANES[:2]  # what learns from so many losses is compiled beforehand
SLOWER = "jaxbio runs this agent with jax.jit, more slowly: its own compiler"


def machine_for(mind: Mind, key: np.ndarray, backend: Any) -> Compiled | Jitted:
    """backend: one of BACKENDS, or None for the fastest one that can."""
    wanted = None if backend is None else checks.choice("backend", backend, BACKENDS)
    if wanted == Jitted.name:
        return _ready(Jitted(mind, key))
    try:
        return _ready(Compiled(mind, key))
    except CannotFlatten as reason:
        if wanted is not None:
            raise ValueError(
                f"backend={wanted!r} cannot run this: it does not know {reason}. "
                f"Leave backend out, or use backend={Jitted.name!r}"
            ) from None
        warnings.warn(f"{SLOWER} does not know {reason}", RuntimeWarning, stacklevel=4)
        return _ready(Jitted(mind, key))


def _ready(machine: Compiled | Jitted) -> Compiled | Jitted:
    for lanes in READY:
        machine.prepare(lanes)
    return machine
