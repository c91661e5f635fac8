"""Regret over rounds: a figure of its own, or lines in axes of the user's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from jaxbio import checks
from jaxbio.analysis.statistics import student_reach
from jaxbio.figures.lines import End, label_ends, panels, room_for, thousands
from jaxbio.figures.style import Look, colours
from jaxbio.sweeps.result import Result

SCALES = ("linear", "log")
LOGARITHMIC = ("", "x", "y", "xy")
BANDS = {"deviation": "one standard deviation", "interval": "95 % interval of the mean"}


def regret_curves(
    results: Mapping[str, Result],
    title: str = "",
    look: Look | None = None,
    note: str | None = None,
    *,
    ax: Axes | None = None,
    labels: Mapping[str, str] | None = None,
    colors: Mapping[str, Any] | None = None,
    band: str | None = "deviation",
    log: str = "",
    xscale: str = "linear",
    yscale: str = "linear",
) -> Figure:
    """Mean regret over rounds for each named result, with a band.

    Args:
      results: name -> Result.
      title, note: above the figure; the note says by default what the band is, and of how many
        runs. Not used with `ax`, where the legend's title says it.
      look: light or dark, wide or narrow; not used with `ax`.
      ax: matplotlib axes to draw into, which keep their own style and get a legend; their figure is
        returned. By default a figure is made, with a label at the end of every line.
      labels: name -> what to call it; others are called by their name.
      colors: name -> a colour of matplotlib's; others have those of jaxbio.
      band: "deviation" (one standard deviation of the runs on either side), "interval" (the 95 %
        interval of the mean, Student's) or None.
      log: "x", "y" or "xy", the axes that are logarithmic; the same as xscale, yscale = "log". A
        scale may also be set later, as in `figure.axes[0].set_yscale("log")`: limits and labels
        follow. A logarithmic axis begins at the least positive number: what is not positive lies
        below it, and a curve that ends there is named in the note.
    Returns:
      The figure. A notebook shows it by itself; `savefig` writes PNG, SVG or PDF.
    """
    look = _checked(results, title, look, note)
    results = {str(name): result for name, result in results.items()}
    names = {name: _own(labels, "labels", name, name) for name in results}
    palette = colours(results, look)
    palette = {name: _own(colors, "colors", name, palette[name]) for name in results}
    if band is not None:
        checks.choice("band", band, tuple(BANDS))
    checks.choice("log", log, LOGARITHMIC)
    for which, scale in (("xscale", xscale), ("yscale", yscale)):
        checks.choice(which, scale, SCALES)
    xscale, yscale = ("log" if name in log else own for name, own in (("x", xscale), ("y", yscale)))
    said = _said(results, band) if note is None else note
    if ax is not None:
        axes, figure = given_axes(ax)
    else:
        below = [name for name, result in results.items() if result.final_regret.mean() <= 0]
        if below and yscale == "log":
            said = f"{said} Not positive, and so below the axis: {', '.join(below)}.".strip()
        texts = {name: _with_number(names[name], results[name]) for name in results}
        figure, (axes,) = panels(
            [""], look, heading=title, note=said, right=room_for(texts.values()), height=3.4
        )
    for name, result in results.items():
        curve = np.asarray(result.regret)
        _line(axes, result.rounds, curve, palette[name], band, names[name])
    axes.set(xlabel="round", ylabel="cumulative regret", xscale=xscale, yscale=yscale)
    _free_limits(axes, results, band)
    thousands(axes)
    if ax is not None:
        axes.legend(title=said, title_fontsize="small", frameon=False)
    else:
        ends = [
            End(
                _with_number(names[name], result), float(result.regret[:, -1].mean()), palette[name]
            )
            for name, result in results.items()
        ]
        label_ends(axes, ends, look)
    return figure


def _with_number(label: str, result: Result) -> str:
    return f"{label}  {result.final_regret.mean():,.0f}"


def _line(
    axes: Axes, rounds: np.ndarray, regret: np.ndarray, colour: Any, band: str | None, label: str
) -> None:
    """The mean of regret [runs, points], and its band."""
    mean = regret.mean(axis=0)
    marker = "o" if len(mean) == 1 else ""
    axes.plot(rounds, mean, color=colour, marker=marker, label=label)
    if band is not None and len(regret) > 1:
        reach = _reach(regret, band)
        axes.fill_between(rounds, mean - reach, mean + reach, color=colour, alpha=0.16, linewidth=0)


def _reach(regret: np.ndarray, band: str) -> np.ndarray:
    """[points]: from the mean of [runs, points] to the end of its band."""
    return student_reach(regret.T) if band == "interval" else regret.std(axis=0)


def _free_limits(axes: Axes, results: Mapping[str, Result], band: str | None) -> None:
    """Limits that a scale of the user's may still change: from (0, 0) on, or from the least
    positive mean on a logarithmic axis. What a band has below the means does not count, and what
    is in the axes already does.
    """
    corners = [np.zeros((1, 2))]
    for result in results.values():
        regret = np.asarray(result.regret)
        mean = regret.mean(axis=0)
        reach = _reach(regret, band) if band is not None and len(regret) > 1 else 0 * mean
        corners += [np.column_stack([result.rounds, y]) for y in (mean, mean + reach)]
    mine = len(results)
    corners += [np.column_stack(line.get_data()) for line in axes.lines[:-mine]]
    axes.dataLim.update_from_data_xy(np.concatenate(corners), ignore=True)
    axes.margins(x=0)
    axes.lines[-mine].sticky_edges.y.append(0)
    axes.autoscale_view()


def _said(results: Mapping[str, Result], band: str | None) -> str:
    """What the figure shows, in words."""
    runs = sorted({len(result.regret) for result in results.values()})
    many = f"{runs[0]:,}" if len(runs) == 1 else f"{runs[0]:,} to {runs[-1]:,}"
    said = f"Mean of {many} run{'' if runs == [1] else 's'}"
    return f"{said}; band: {BANDS[band]}." if band and runs != [1] else f"{said}."


def _own(given: Any, what: str, name: str, default: Any) -> Any:
    return (
        default
        if given is None
        else checks.mapping(what, given, f"names to {what}").get(name, default)
    )


def given_axes(ax: Any) -> tuple[Axes, Figure]:
    """Axes of the user's, and the figure they are in."""
    if not isinstance(ax, Axes):
        raise TypeError(f"ax must be Axes of matplotlib, but got {checks.shown(ax)}")
    figure = ax.get_figure(root=True)
    assert isinstance(figure, Figure)
    return ax, figure


def _checked(results: Any, title: Any, look: Any, note: Any) -> Look:
    if not checks.mapping("results", results, "names to Results"):
        raise ValueError("results must have at least one Result, but it is empty")
    for name, one in results.items():
        if not isinstance(one, Result):
            raise TypeError(
                f"results[{checks.shown(name)}] must be a Result, but got {checks.shown(one)}"
            )
    if len({str(name) for name in results}) < len(results):
        raise ValueError(f"results must have names that differ as text, but got {list(results)}")
    checks.text("title", title)
    if note is not None:
        checks.text("note", note)
    return checked_look(look)


def checked_look(look: Any) -> Look:
    """The one that is given, or the usual one."""
    if look is not None and not isinstance(look, Look):
        raise TypeError(f"look must be a Look, but got {checks.shown(look)}")
    return Look() if look is None else look
