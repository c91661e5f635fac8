"""What a contest found: for JSON, and as tables to read."""

from __future__ import annotations

from typing import Any

import xarray as xr

from jaxbio.studies.contest.problems import CLASSES
from jaxbio.studies.contest.study import FIXED, FORMS, TUNED

BEHIND = ("behind", "behind_low", "behind_high")
RATIO = ("ratio", "ratio_low", "ratio_high")
WORST = ("worst", "worst_low", "worst_high")
SAVED = ("saved", "saved_low", "saved_high")
FORM_TITLES = {
    "theorem": "Every learner in the form of its theorem, or its usual one",
    "tuned": "Every learner tuned on each problem",
    "fixed": "Every learner with one setting for all problems",
}
CELL, HEAD = 9, 24  # letters


def percent(share: float) -> str:
    """In %, with a decimal below 10; never a minus before nothing."""
    value = 100 * share
    text = f"{value:.1f}" if abs(value) < 9.95 else f"{value:.0f}"
    return text.replace("-0.0", "0.0") if float(text) == 0 else text


def summary(data: xr.Dataset) -> dict[str, Any]:
    """Everything but single runs and problems, by form."""
    return {form: _of_form(data.sel(form=form)) for form in FORMS}


def _of_form(data: xr.Dataset) -> dict[str, Any]:
    found: dict[str, Any] = {
        "classes": {name: _of_class(data.sel({"class": name})) for name in _names(data, "class")},
        "worst": {name: _of_worst(data.sel(learner=name)) for name in _by_worst(data)},
    }
    if "saved" in data:
        found["states"] = {name: _states(data.sel({"class": name}))
                           for name in _names(data, "class")}  # fmt: skip
    return found


def _names(data: xr.Dataset, dim: str) -> list[str]:
    return [str(name) for name in data[dim].values]


def _by_worst(data: xr.Dataset) -> list[str]:
    """Learners, the most robust first. data: of one form."""
    return _names(data.sortby("worst"), "learner")


def _of_class(data: xr.Dataset) -> dict[str, Any]:
    """Learner -> its numbers, the best first. data: of one form and class."""
    ordered = data.sortby("behind")
    return {
        name: {
            "behind": _numbers(ordered.sel(learner=name), BEHIND),
            "ratio": _numbers(ordered.sel(learner=name), RATIO),
            "may_be_best": bool(ordered.may_be_best.sel(learner=name)),
        }
        for name in _names(ordered, "learner")
    }


def _of_worst(data: xr.Dataset) -> dict[str, Any]:
    """data: of one form and learner."""
    settings = sorted(set(map(str, data.setting.values.tolist())))
    return {
        "worst": _numbers(data, WORST),
        "class": str(data.worst_class.values),
        "may_be_robust": bool(data.may_be_robust),
        "settings": settings,
    }


def _states(data: xr.Dataset) -> dict[str, Any]:
    """data: of one form and class."""
    return {
        "with_states": str(data.with_states.values),
        "without": str(data.without.values),
        "saved": _numbers(data, SAVED),
        "ratio": float(data.saved_ratio),
    }


def _numbers(data: xr.Dataset, names: tuple[str, ...]) -> list[float]:
    return [float(data[name]) for name in names]


def as_text(found: dict[str, Any]) -> str:
    """Tables of the tuned and of the fixed form, and who may be the best; where the files are."""
    lines = ["Regret beyond that of the best tuned learner of a problem, in % of what guessing "
             "costs; * nobody is surely better (5 %)"]  # fmt: skip
    for form in (TUNED, FIXED):
        own = found["forms"][form]
        lines += ["", FORM_TITLES[form], *_table(own)]
        if "states" in own:
            lines += ["", *_worth(own["states"])]
    lines += ["", *_answer(found["forms"][FIXED]["worst"])]
    return "\n".join([*lines, "", *found["files"]])


def _answer(worst: dict[str, Any]) -> list[str]:
    """Who is least behind in its worst class. worst: of the form with fixed settings."""
    first, *others = worst
    own, may = worst[first], [name for name in others if worst[name]["may_be_robust"]]
    mean, low, high = map(percent, own["worst"])
    return [
        f"If nothing is known: {own['settings'][0]}. Its worst class is {own['class']}, where it "
        f"is {mean} % behind the best ({low} to {high} %).",
        f"Not surely worse: {', '.join(may)}." if may else "All others are surely worse.",
    ]


def _table(form: dict[str, Any]) -> list[str]:
    classes = form["classes"]
    words = [*(f"{name[: CELL - 1]:>{CELL}}" for name in classes), f"{'worst':>{CELL}}"]
    rows = [" " * HEAD + "".join(words)]
    for label, one in form["worst"].items():
        cells = [_cell(classes[name][label]["behind"][0], classes[name][label]["may_be_best"])
                 for name in classes]  # fmt: skip
        cells.append(_cell(one["worst"][0], one["may_be_robust"]))
        rows.append(f"{label[: HEAD - 1]:<{HEAD}}" + "".join(cells))
    return rows


def _cell(share: float, best: bool) -> str:
    return f"{percent(share) + ('*' if best else ' '):>{CELL}}"


def _worth(states: dict[str, Any]) -> list[str]:
    """A line for each class."""
    rows = ["What states save: the best learner that looks at them against the best that does not"]
    for name, one in states.items():
        mean, low, high = one["saved"]
        ratio = one["ratio"]
        shown = f", {ratio:.2f} of its regret" if ratio == ratio else ""
        rows.append(
            f"  {name:<{HEAD - 2}}{percent(mean):>6} % ({percent(low)} to {percent(high)}): "
            f"{one['with_states']} against {one['without']}{shown}"
        )
    return rows


def legend() -> str:
    """What the names of classes mean."""
    return "; ".join(f"{name}: {one.title}" for name, one in CLASSES.items())
