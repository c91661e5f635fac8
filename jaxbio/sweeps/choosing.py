"""A point of a sweep's grid, chosen by values of its axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from jaxbio import checks
from jaxbio.sweeps.result import Result


def place(data: Any, at: Mapping[str, Any] | None, over: tuple[str, ...] = ()) -> dict[str, Any]:
    """axis -> value, for all axes but those of `over`; an axis of one value need not be in `at`."""
    if not isinstance(data, xr.Dataset) or "final_regret" not in data:
        raise TypeError(f"data must be the Dataset of a sweep, but got {type(data).__name__}")
    final = data.final_regret
    axes = [str(dim) for dim in final.dims if dim not in ("learner", "run")]
    for name in over:
        checks.choice("an axis", name, axes)
    given = {} if at is None else checks.mapping("at", at, "axes to values")
    for name, value in given.items():
        checks.choice("an axis in at", name, [axis for axis in axes if axis not in over])
        checks.choice(f"at[{name!r}]", value, final[name].values.tolist())
    left = {axis: final[axis].values.tolist() for axis in axes if axis not in (*over, *given)}
    many = {axis: values[0] for axis, values in left.items() if len(values) > 1}
    if many:
        raise ValueError(
            f"the sweep has several values of {', '.join(many)}: choose with at=, as in at={many}"
        )
    return {**given, **{axis: values[0] for axis, values in left.items()}}


def results(data: xr.Dataset, at: Mapping[str, Any] | None) -> dict[str, Result]:
    """learner -> its Result at a point. Realised regret is not in a sweep: asking for it raises."""
    point = place(data, at)
    if "regret" not in data:
        raise ValueError(
            f"the sweep has no regret curves, as it was made with keep={data.attrs.get('keep')!r}: "
            "make it with keep='curves'"
        )
    here = data.sel(point)
    facts = [
        str(name)
        for name, values in here.data_vars.items()
        if set(values.dims) == {"learner", "run"} and not str(name).startswith("final_")
    ]
    return {str(name): _result(here.sel(learner=name), facts) for name in here.learner.values}


def _result(one: xr.Dataset, facts: list[str]) -> Result:
    regret, loss = (one[name].transpose("run", ...).values for name in ("regret", "loss"))
    info = {name: one[name].values for name in facts}
    backend = str(one.attrs.get("backend", ""))
    return Result(one["round"].values, regret, loss, info, _gone, backend, str(one.learner.item()))


def _gone() -> np.ndarray:
    raise ValueError("realised regret is not in the Dataset of a sweep: play the point by simulate")
