"""Numbers in sentences."""

from __future__ import annotations

from jaxbio.data.holding.distance import Span

LEAST = 1e-6
DURATIONS = ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


def percent(share: float) -> str:
    """0.3%, 12%."""
    value = 100 * float(share)
    if value == 0:
        return "0%"
    if abs(value) < 0.01:
        return "less than 0.01%"
    return f"{value:.2g}%" if abs(value) < 10 else f"{value:.0f}%"


def short(value: float) -> str:
    """Two figures that count, without powers of ten."""
    value = float(value)
    if 0 < abs(value) < LEAST:
        return f"less than {LEAST:.6f}"
    if value == float("inf"):
        return "any number"
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    text = f"{value:.2g}"
    return f"{value:.6f}".rstrip("0") if "e" in text else text


def span(found: Span) -> str:
    """From the low end to the high one."""
    return f"{short(found.low)} to {short(found.high)}"


def lasting(waited: float, unit: str) -> str:
    """unit: "seconds", which are said in what fits, or another."""
    if unit != "seconds":
        return f"{short(waited)} {unit}"
    size, name = next((one for one in DURATIONS if waited >= one[0]), DURATIONS[-1])
    return f"{short(waited / size)} {name}"


def percents(found: Span) -> str:
    """The same of shares."""
    return f"{percent(found.low)} to {percent(found.high)}"
