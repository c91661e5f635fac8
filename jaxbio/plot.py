"""Figures of results, and how they may look."""

from jaxbio.figures.lines import regret_curves
from jaxbio.figures.style import DARK, LIGHT, Look

__all__ = ["DARK", "LIGHT", "Look", "regret_curves"]
