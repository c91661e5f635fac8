"""Padding of the state axis, so that problems with different S share one program."""

from __future__ import annotations

from typing import Any

import numpy as np


def pad_states(values: Any, slots: int) -> np.ndarray:
    """values [..., S] with zeros up to `slots` on the last axis."""
    values = np.asarray(values)
    padded = np.zeros((*values.shape[:-1], slots), values.dtype)
    padded[..., : values.shape[-1]] = values
    return padded
