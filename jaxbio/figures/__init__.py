"""The figures of the paper's experiments, and those that the paper does not have."""

from jaxbio.figures.gallery import Drawing, drawings
from jaxbio.figures.saving import save_all
from jaxbio.figures.tuning import tuning
from jaxbio.figures.waiting import outstanding

__all__ = ["Drawing", "drawings", "outstanding", "save_all", "tuning"]
