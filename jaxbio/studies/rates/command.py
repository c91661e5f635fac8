"""jaxbio rates: how regret grows with T, S, d and K."""

from __future__ import annotations

from functools import partial
from typing import Any

import xarray as xr

from jaxbio.studies import parsing
from jaxbio.studies.outputs import named, parts, write
from jaxbio.studies.rates.series import AXES, VALUES
from jaxbio.studies.rates.study import measure_rates

FORWARDED = ("horizons", "states", "delays", "actions", "horizon", "delta", "runs", "seed")


def add(commands: Any) -> None:
    about = "how regret grows with T, S, d and K, beside the paper's rates"
    example = "jaxbio rates --runs 4000 --horizon 32000"
    made = parsing.add_study(commands, "rates", about, study, example, measure_rates)
    for name in VALUES:
        parsing.option(made, f"--{name}", measure_rates, "along this axis", type=parsing.whole)
    parsing.option(made, "--horizon", measure_rates, "T elsewhere", type=parsing.whole)
    parsing.option(made, "--delta", measure_rates, "confidence", type=float)
    parsing.store(made)


def study(arguments: Any) -> tuple[dict[str, Any], str]:
    """Play, write data and figures; what is found, and as text."""
    given = {name: getattr(arguments, name) for name in FORWARDED}
    name = named(*given.values())
    data = measure_rates(**given, store=parts(arguments, name), progress=not arguments.quiet)
    from jaxbio.studies.rates.figure import slopes  # matplotlib takes a while to import

    files = write(arguments.folder, name, {name: data}, "slopes", partial(slopes, data))
    found = {"files": files, "lines": rows(data)}
    return found, as_text(found)


def rows(data: xr.Dataset) -> list[dict[str, Any]]:
    """A dict for each line of the study."""
    lines = data[[name for name, values in data.data_vars.items() if values.dims == ("line",)]]
    found = lines.to_dataframe().reset_index(drop=True).to_dict("records")
    for number, row in enumerate(found):
        points = data.isel(line=number).dropna("point", subset=["value"])
        row |= {name: points[name].values.tolist() for name in ("value", "regret_mean", "rate")}
    return found


def as_text(found: dict[str, Any]) -> str:
    lines = [
        f"{'in':<4}{'problem':<18}{'learner':<14}{'slope':>7}  {'95 % interval':<18}"
        f"{'first':>7}{'last':>7}{'rate':>7}"
    ]
    for row in found["lines"]:
        interval = f"[{row['slope_low']:z.3f}, {row['slope_high']:z.3f}]"
        lines.append(
            f"{AXES[row['axis']]:<4}{row['problem']:<18}{row['learner']:<14}{row['slope']:>z7.3f}  "
            f"{interval:<18}{row['slope_first']:>z7.2f}{row['slope_last']:>z7.2f}"
            f"{row['rate_slope']:>z7.3f}"
        )
    return "\n".join([*lines, "", *found["files"]])
