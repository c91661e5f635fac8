"""jaxbio regimes: stochastic and adversarial mappings and losses, all four pairs."""

from __future__ import annotations

from functools import partial
from typing import Any

import xarray as xr

from jaxbio.commands.files import write
from jaxbio.lab.regimes import play_regimes


def study(options: Any) -> tuple[dict[str, Any], str]:
    """Play the four regimes, write data and figures; what is found, and as text."""
    values = options.horizon, options.delay, options.runs, options.seed
    data = play_regimes(
        horizon=options.horizon,
        delay=options.delay,
        runs=options.runs,
        seed=options.seed,
        store=options.folder / "store" / "-".join(map(str, values)),
        progress=not options.quiet,
    )
    from jaxbio.figures.regimes import regimes  # matplotlib takes a while to import

    files = write(options.folder, "regimes", {"regimes": data}, "regret", partial(regimes, data))
    found = {"files": files, "regret": finals(data)}
    return found, as_text(found)


def finals(data: xr.Dataset) -> dict[str, dict[str, dict[str, float]]]:
    """regime -> learner -> mean and standard deviation of the final regret."""
    found = {}
    for regime in map(str, data.regime.values):
        found[regime] = {}
        for learner in map(str, data.learner.values):
            final = data.final_regret.sel(regime=regime, learner=learner)
            found[regime][learner] = {"mean": float(final.mean()), "sd": float(final.std(ddof=1))}
    return found


def as_text(found: dict[str, Any]) -> str:
    """Final regrets by regime, and where the files are."""
    lines = []
    for regime, rows in found["regret"].items():
        lines.append(regime)
        lines += [
            f"  {name:<12}{row['mean']:>9.1f} +- {row['sd']:.1f}" for name, row in rows.items()
        ]
    return "\n".join([*lines, *found["files"]])
