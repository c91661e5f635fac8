"""Padding of the state axis, so that problems with different S share one program."""

from __future__ import annotations

from typing import Any

import numpy as np


def pad_states(values: Any, slots: int) -> np.ndarray:
    """values [..., S] with zeros up to `slots` on the last axis."""
    widths = [(0, 0)] * (np.ndim(values) - 1) + [(0, slots - np.shape(values)[-1])]
    return np.pad(np.asarray(values), widths)
