"""How figures look: themes, a colour for each learner, and the room that text takes.

Whatever draws takes a `Look`: the theme (light or dark) and whether the figure is for a narrow
screen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from matplotlib.colors import to_hex, to_rgb
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

DPI = 160
SIZE = 10.0  # points, of all text but titles
BREAK = re.compile(r"(?<!=)\s+(?![=%])")  # where a line may end

# Learner -> its colour in every figure. The first eight are Okabe and Ito's, told apart with any
# colour vision; "ink" is black, or white on dark.
LEARNER_COLOURS = {
    "MetaBIO": "#0072B2",
    "DAda-Exp3": "#D55E00",
    "MetaAdaBIO": "#009E73",
    "NSD-UCRL2": "#CC79A7",
    "Thompson": "#E69F00",
    "MetaBIO, Tsallis-INF": "#56B4E9",
    "UCB1": "#8C8C8C",
    "MetaBIO, skipping": "ink",
    "StateThompson": "#8E63C4",
    "MetaBIO-mean": "#4A5FC9",
    "HindsightExp3": "#A6761D",
    "Hindsight-Tsallis": "#7A8B2F",
    "QPM-D UCB1": "#B3A38B",
    "Tsallis-INF": "#C0304A",
    "Exp3": "#E58A9B",
}
REGISTERED = {  # the same learners by the names of `make_learner`
    "metabio": "MetaBIO",
    "dada-exp3": "DAda-Exp3",
    "metaadabio": "MetaAdaBIO",
    "nsd-ucrl2": "NSD-UCRL2",
    "thompson": "Thompson",
    "metabio-tsallis": "MetaBIO, Tsallis-INF",
    "ucb1": "UCB1",
    "metabio-skipping": "MetaBIO, skipping",
    "state-thompson": "StateThompson",
    "metabio-mean": "MetaBIO-mean",
    "hindsight-exp3": "HindsightExp3",
    "hindsight-tsallis": "Hindsight-Tsallis",
    "qpmd-ucb1": "QPM-D UCB1",
    "tsallis-inf": "Tsallis-INF",
    "exp3": "Exp3",
}
OTHERWISE = {"Thompson sampling": "Thompson"}  # what a learner is called in words
REFERENCES = {"uniform play": "muted"}  # no contestants: drawn in a colour of the theme
LEARNER_DASHES = {"MetaBIO, skipping": (0, (4, 2)), "MetaBIO, Tsallis-INF": (0, (6, 1.5))}
DASHES = (0, (5, 2.5))  # of what is not measured, or of a variant of a learner
# Of learners without one of their own.
SPARE_COLOURS = ("#1798A8", "#E7298A", "#66A61E", "#2F6DE0", "#B5651D", "#8F8F00", "#F0705A")


@dataclass(frozen=True)
class Theme:
    """Colours of everything that is not data."""

    name: str
    paper: str
    ink: str
    muted: str
    grid: str


LIGHT = Theme("light", "#ffffff", "#1b1d20", "#5c6168", "#dfe2e6")
DARK = Theme("dark", "#15181d", "#eceef1", "#a3a9b1", "#343a42")
THEMES = (LIGHT, DARK)


@dataclass(frozen=True)
class Look:
    """A theme, and whether the figure is for a narrow screen: one panel below the other."""

    theme: Theme = LIGHT
    narrow: bool = False

    @property
    def width(self) -> float:
        """Inches for text across the figure."""
        return 4.4 if self.narrow else 11.2

    def mixed(self, colour: str, share: float) -> str:
        """A colour with a share of the ink (positive) or of the paper (negative) mixed in."""
        other = np.array(to_rgb(self.theme.ink if share > 0 else self.theme.paper))
        red, green, blue = np.array(to_rgb(colour)) * (1 - abs(share)) + other * abs(share)
        return to_hex((float(red), float(green), float(blue)))


def style(look: Look) -> dict[Any, Any]:
    """Settings of matplotlib for a look."""
    theme = look.theme
    return {
        "figure.facecolor": theme.paper,
        "axes.facecolor": theme.paper,
        "savefig.facecolor": theme.paper,
        "text.color": theme.ink,
        "axes.labelcolor": theme.ink,
        "axes.edgecolor": theme.muted,
        "xtick.color": theme.muted,
        "ytick.color": theme.muted,
        "xtick.labelcolor": theme.ink,
        "ytick.labelcolor": theme.ink,
        "grid.color": theme.grid,
        "grid.linewidth": 0.7,
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlelocation": "left",
        "axes.titlesize": SIZE + 0.5,
        "axes.titleweight": "bold",
        "font.family": "DejaVu Sans",
        "font.size": SIZE,
        "axes.labelsize": SIZE,
        "xtick.labelsize": SIZE - 0.5,
        "ytick.labelsize": SIZE - 0.5,
        "lines.linewidth": 1.9,
        "pdf.fonttype": 42,
    }


def colours(learners: Iterable[str], look: Look) -> dict[str, str]:
    """Learner -> colour: its own wherever it is drawn; others take the spare ones in turn.

    A name may have options (metabio:delta=0.05, or "MetaBIO, rate x 3"): the first of several such
    has the colour.
    """
    names = list(learners)
    found: dict[str, str] = {}
    for name in names:
        own = REFERENCES.get(name) or _own_colour(name)
        if own is not None and own not in found.values():
            found[name] = own
    spare = [c for c in SPARE_COLOURS if c not in found.values()]
    unknown = [name for name in names if name not in found]
    found |= {name: spare[i % len(spare)] for i, name in enumerate(unknown)}
    themed = {"ink": look.theme.ink, "muted": look.theme.muted}
    return {name: themed.get(found[name], found[name]) for name in names}


def _own_colour(name: str) -> str | None:
    """Of the learner that a name means, with its options or without."""
    for part in (name, name.split(":")[0], name.split(",")[0]):
        known = OTHERWISE.get(part, REGISTERED.get(part, part))
        if known in LEARNER_COLOURS:
            return LEARNER_COLOURS[known]
    return None


def shades(colour: str, count: int, look: Look) -> list[str]:
    """A sequence of one hue, from near the paper to near the ink."""
    pale, strong = (-0.55, 0.45) if look.theme is LIGHT else (-0.35, 0.6)
    return [look.mixed(colour, share) for share in np.linspace(pale, strong, count)]


@cache
def text_inches(text: str, size: float = SIZE, bold: bool = False) -> float:
    """The width of a line of text."""
    weight = "bold" if bold else "normal"
    font = FontProperties(family="DejaVu Sans", weight=weight, size=size)
    return text_to_path.get_text_width_height_descent(text, font, ismath=False)[0] / 72


def wrapped(text: str, inches: float, size: float, bold: bool = False) -> list[str]:
    """Lines of a text that are no wider than so many inches; "S = d" and "95 %" stay together."""
    lines: list[str] = []
    for word in filter(None, BREAK.split(text)):
        longer = f"{lines[-1]} {word}" if lines else ""
        if lines and text_inches(longer, size, bold) <= inches:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def cut_to(label: str, inches: float) -> str:
    """A label in one line; where there is no room for it, without its middle."""
    shown = " ".join(label.split())
    if text_inches(shown) <= inches:
        return shown
    kept = len(shown) - 1
    while kept > 1 and text_inches(_without_middle(shown, kept)) > inches:
        kept -= 1
    return _without_middle(shown, kept)


def _without_middle(text: str, kept: int) -> str:
    return f"{text[: (kept + 1) // 2]}…{text[len(text) - kept // 2 :]}"
