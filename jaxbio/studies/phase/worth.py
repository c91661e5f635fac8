"""What the regrets of a diagram say: ratios, differences, and all cells in one number."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray as xr

from jaxbio.analysis.intervals import of_mean
from jaxbio.analysis.statistics import ratio_of_means, student_reach

FORMS = ("tuned", "theorem")
GROUPS = ("with states", "without")
REGRET = ("regret_mean", "mean_low", "mean_high")
HELPS, UNDECIDED, HURTS = -1, 0, 1
RATIO = ("ratio", "low", "high")
DIFFERENCE = ("difference", "difference_low", "difference_high")


def compared(data: xr.Dataset) -> xr.Dataset:
    """With means, ratios and differences, and the 95 % intervals of all.

    data: final_regret [form, group, ..., run]. Adds regret_mean, mean_low and mean_high [form,
    group, ...]; ratio, low and high [form, ...], with states relative to without, see
    `ratio_of_means`, NaN where a mean is not above 0; and difference, difference_low and
    difference_high [form, ...], with states less without. All keep the pairing of runs.
    """
    finals = data.final_regret.transpose("form", "group", ..., "run")
    dims = finals.dims[:-1]
    with_states, without = (finals.sel(group=group).values for group in GROUPS)
    tables = {
        REGRET: (dims, of_mean(finals.values)),
        RATIO: (("form", *dims[2:]), ratio_of_means(with_states, without)),
        DIFFERENCE: (("form", *dims[2:]), of_mean(with_states - without)),
    }
    return data.assign(
        {
            name: (own, values)
            for names, (own, found) in tables.items()
            for name, values in zip(names, found, strict=True)
        }
    )


class Worth(NamedTuple):
    """Of all cells of a form, a mapping, a K and a T.

    ratio, low, high: the geometric mean of the cells' ratios and its 95 % interval; least, most: of
    them; cells: how many there are; rated: how many have a ratio; helps, hurts: in how many states
    surely do (95 % for each), by the difference where there is no ratio.
    """

    cells: int
    rated: int
    ratio: float
    low: float
    high: float
    least: float
    most: float
    helps: int
    hurts: int


def overall(data: xr.Dataset) -> Worth:
    """data: of `compared`, of one form. Runs belong together across cells: they are the same
    worlds, as far as cells have the same ones.
    """
    finals = data.final_regret.transpose("group", ..., "run")
    ratios, found = data.ratio.values.ravel(), sides(data)
    rated = np.isfinite(ratios)
    mean = low = high = least = most = np.nan
    if rated.any():
        values = finals.values.reshape(len(GROUPS), len(ratios), -1)[:, rated]  # [group, cell, run]
        relative = values / values.mean(axis=-1, keepdims=True)
        mean = float(np.exp(np.log(ratios[rated]).mean()))
        reach = float(np.exp(student_reach((relative[0] - relative[1]).mean(axis=0))))
        low, high = mean / reach, mean * reach
        least, most = float(ratios[rated].min()), float(ratios[rated].max())
    helps, hurts = (int((found == side).sum()) for side in (HELPS, HURTS))
    return Worth(len(ratios), int(rated.sum()), mean, low, high, least, most, helps, hurts)


def less(data: xr.Dataset) -> xr.DataArray:
    """Is the mean regret less with states? bool [...]. data: of `compared`, of one form."""
    return data.difference < 0


def sides(data: xr.Dataset) -> xr.DataArray:
    """HELPS or HURTS where states surely do (95 % for each cell), else UNDECIDED: [...]. By the
    ratio, and by the difference where there is none.

    data: of `compared`, of one form.
    """
    rated = data.ratio.notnull()
    helps = xr.where(rated, data.high < 1, data.difference_high < 0)
    hurts = xr.where(rated, data.low > 1, data.difference_low > 0)
    return hurts.astype(int) - helps.astype(int)
