"""Figures of results, and how they may look. Matplotlib is imported when the first one is drawn."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jaxbio.figures.finals import final_regret
    from jaxbio.figures.regret import regret_curves
    from jaxbio.figures.style import DARK, LIGHT, Look
    from jaxbio.figures.sweeps import heatmap, lines

__all__ = ["DARK", "LIGHT", "Look", "final_regret", "heatmap", "lines", "regret_curves"]

PLACES = {  # name -> the module of jaxbio.figures that has it
    "DARK": "style",
    "LIGHT": "style",
    "Look": "style",
    "final_regret": "finals",
    "heatmap": "sweeps",
    "lines": "sweeps",
    "regret_curves": "regret",
}


def __getattr__(name: str) -> Any:
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"jaxbio.figures.{PLACES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
