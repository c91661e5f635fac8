"""Numbers in sentences."""

from __future__ import annotations


def percent(share: float) -> str:
    """0.3 %, 12 %."""
    value = 100 * share
    if value == 0:
        return "0 %"
    if abs(value) < 0.01:
        return "less than 0.01 %"
    return f"{value:.2g} %" if abs(value) < 10 else f"{value:.0f} %"


def short(value: float) -> str:
    """Two or three figures that count."""
    return f"{value:.2g}" if abs(value) < 1 else f"{value:.3g}"
