"""The table of a contest as a picture: learners by classes of problems, the most robust above."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, PowerNorm, to_rgb
from matplotlib.figure import Figure

from jaxbio.figures.lines import panels
from jaxbio.figures.style import LEARNER_COLOURS, SIZE, Look, text_inches
from jaxbio.studies.contest.entrants import titled
from jaxbio.studies.contest.text import percent

ROW, COLUMN = 0.235, 0.47  # inches
LETTERS = SIZE - 1  # points, of numbers
GAP = 0.35  # of a column, before that of the worst class
WORST = "worst class"
FULL = 1.0  # and more has the strongest colour: as bad as guessing
SHADES = 65
HEADINGS = {
    "tuned": "Which learner for which problems? Each tuned on each problem",
    "fixed": "Which learner if nothing is known? One setting for all problems",
    "theorem": "Which learner in the form of its theorem?",
}
SEES, BLIND = "●", "○"  # looks at states, or does not


def table(data: xr.Dataset, form: str, look: Look) -> Figure:
    """data: of `contest`; form: of FORMS. On a narrow screen the worst classes alone."""
    own = data.sel(form=form).sortby("worst")
    classes = [] if look.narrow else [str(name) for name in own["class"].values]
    labels = [f"{SEES if looks else BLIND} {name}" for name, looks in
              zip(own.learner.values, own.looks_at_states.values, strict=True)]  # fmt: skip
    heads = [*titled(classes).values(), WORST]
    head = max(text_inches(one, LETTERS) for one in heads) + 0.15  # inches
    left = max(text_inches(label) for label in labels) + 0.25
    figure, (axes,) = panels(
        [""],
        look,
        heading=HEADINGS[form],
        note=_note(own, look),
        left=left,
        right=0.15,
        height=head + ROW * len(labels),
    )
    places = [float(i) for i in range(len(classes))] + [len(classes) + GAP * bool(classes)]
    values = np.column_stack(
        [*(own.behind.sel({"class": name}).values for name in classes), own.worst.values]
    )
    bold = np.column_stack(
        [*(own.may_be_best.sel({"class": name}).values for name in classes), own.may_be_robust]
    )
    _cells(axes, places, values, bold, look)
    for place, text in zip(places, heads, strict=True):
        axes.text(place + 0.5, -0.15, text, rotation=90, ha="center", va="bottom", size=LETTERS)
    if look.narrow:
        for row, name in enumerate(own.worst_class.values.tolist()):
            shown = titled([name])[name]
            axes.text(1.15, row + 0.5, shown, ha="left", va="center", size=LETTERS)
    wide = max(places[-1] + 1, (look.width - left - 0.15) / COLUMN if look.narrow else 0)
    axes.set(xlim=(0, wide), ylim=(len(labels), -head / ROW))
    axes.set_yticks(np.arange(len(labels)) + 0.5, labels)
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    return figure


def _note(data: xr.Dataset, look: Look) -> str:
    """data: of one form."""
    about = data.attrs
    order = "Most robust above." if look.narrow else "Means over the problems of a class."
    return (
        f"Regret beyond that of the best tuned learner of a problem, in % of what guessing costs. "
        f"{order} Bold: nobody is surely better (5 %). {SEES} looks at states, {BLIND} does not. "
        f"T = {about['horizon']:,}, {about['runs']:,} runs on each of {data.sizes['problem']} "
        "problems."
    )


def _cells(
    axes: Axes, places: list[float], values: np.ndarray, bold: np.ndarray, look: Look
) -> None:
    """places: the left border of each column. values, bold: [rows, columns]."""
    colours = LinearSegmentedColormap.from_list(
        "behind", [look.theme.paper, LEARNER_COLOURS["DAda-Exp3"]], SHADES
    )
    norm = PowerNorm(0.5, 0, FULL)
    rows = np.arange(len(values) + 1)
    for place, column, strong in zip(places, values.T, bold.T, strict=True):
        shown = np.clip(column, 0, FULL)
        borders = np.array([place, place + 1])
        axes.pcolormesh(borders, rows, shown[:, None], cmap=colours, norm=norm, rasterized=True,
                        edgecolors=look.theme.paper, linewidth=0.8)  # fmt: skip
        for row, (value, best) in enumerate(zip(column, strong, strict=True)):
            axes.text(
                place + 0.5,
                row + 0.5,
                percent(value),
                ha="center",
                va="center",
                size=LETTERS,
                weight="bold" if best else "normal",
                color=_letters(colours(norm(shown[row])), look),
            )


def _letters(face: tuple[float, ...], look: Look) -> str:
    """Of ink and paper, the one that is further from the colour below."""
    weights = np.array([0.299, 0.587, 0.114])
    below = float(weights @ np.array(face[:3]))
    theme = look.theme
    return max((theme.ink, theme.paper), key=lambda one: abs(float(weights @ to_rgb(one)) - below))
