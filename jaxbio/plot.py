"""Figures of results, and how they may look."""

from jaxbio.figures.finals import final_regret
from jaxbio.figures.regret import regret_curves
from jaxbio.figures.style import DARK, LIGHT, Look
from jaxbio.figures.sweeps import heatmap, lines

__all__ = ["DARK", "LIGHT", "Look", "final_regret", "heatmap", "lines", "regret_curves"]
