"""`data.jaxbio`: what a sweep's Dataset can be asked. Figures are imported when they are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import xarray as xr

from jaxbio.analysis.compare import compare
from jaxbio.analysis.comparison import Comparison
from jaxbio.sweeps import choosing
from jaxbio.sweeps.result import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@xr.register_dataset_accessor("jaxbio")
class SweepAccessor:
    """Of the Dataset that `jb.sweep` returns: comparisons and figures.

    `at` chooses a point of the grid, axis -> value; axes of one value need not be named.
    """

    def __init__(self, data: xr.Dataset) -> None:
        self._data = data

    def compare(self, at: Mapping[str, Any] | None = None, **options: Any) -> Comparison:
        """`jb.compare` of the learners at a point."""
        return compare(self._data, at=at, **options)

    def heatmap(self, x: str, y: str, **options: Any) -> Figure:
        """`jaxbio.plot.heatmap`: mean final regret over two axes, a panel for each learner."""
        from jaxbio.figures.sweeps import heatmap

        return heatmap(self._data, x, y, **options)

    def lines(self, x: str, **options: Any) -> Figure:
        """`jaxbio.plot.lines`: mean final regret over one axis, a line for each learner."""
        from jaxbio.figures.sweeps import lines

        return lines(self._data, x, **options)

    def curves(self, at: Mapping[str, Any] | None = None, **options: Any) -> Figure:
        """`jaxbio.plot.regret_curves` of the learners at a point."""
        from jaxbio.figures.regret import regret_curves

        return regret_curves(self.results(at), **options)

    def results(self, at: Mapping[str, Any] | None = None) -> dict[str, Result]:
        """learner -> Result at a point, from the recorded curves; without realised regret."""
        return choosing.results(self._data, at)
