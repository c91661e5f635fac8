"""A figure that a notebook shows by itself, and whose text stays text in a PDF."""

from __future__ import annotations

import io
from typing import Any

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

SHOWN = 100  # dots per inch in a notebook
FONTS: dict[Any, Any] = {
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
}  # whole letters that a journal accepts, embedded


class Picture(Figure):
    """matplotlib's Figure, made without pyplot: no window, nothing to close."""

    def savefig(self, *given: Any, **options: Any) -> None:
        with rc_context(FONTS):
            super().savefig(*given, **options)

    def _repr_png_(self) -> bytes:
        """What a notebook shows."""
        shown = io.BytesIO()
        if not isinstance(self.canvas, FigureCanvasAgg):
            FigureCanvasAgg(self)
        self.savefig(shown, format="png", dpi=SHOWN, pil_kwargs={"optimize": True})
        return shown.getvalue()
