"""jaxbio regimes: stochastic and adversarial mappings and losses, all four pairs."""

from __future__ import annotations

from functools import partial
from typing import Any

import xarray as xr

from jaxbio.commands.files import named, parts, write
from jaxbio.lab.regimes import play_delays, play_regimes


def study(options: Any) -> tuple[dict[str, Any], str]:
    """Play the four regimes, over rounds and over delays, write data and figures; what is found,
    and as text.
    """
    sizes = {name: getattr(options, name) for name in ("horizon", "runs", "seed")}
    name = named(options.horizon, options.delay, options.delays, options.runs, options.seed)
    store, shown = parts(options, name), not options.quiet
    data = play_regimes(delay=options.delay, store=store / "rounds", progress=shown, **sizes)
    grown = play_delays(options.delays, store=store / "delays", progress=shown, **sizes)
    from jaxbio.figures.regimes import delays, regimes  # matplotlib takes a while to import

    files = write(options.folder, name, {name: data}, "regret", partial(regimes, data))
    more = {f"{name}-delays": grown}
    files += write(options.folder, name, more, "delays", partial(delays, grown))
    found = {"files": files, "regret": finals(data), "by delay": by_delay(grown)}
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


def by_delay(data: xr.Dataset) -> dict[str, dict[str, dict[str, list[float]]]]:
    """regime -> learner -> delay -> mean final regret with low and high, its 95 % interval."""
    names = ("regret_mean", "mean_low", "mean_high")
    return {
        str(regime): {
            str(learner): {
                str(delay): [float(data[name].sel(place | {"delay": delay})) for name in names]
                for delay in data.delay.values
            }
            for learner in data.learner.values
            for place in [{"regime": regime, "learner": learner}]
        }
        for regime in data.regime.values
    }


def as_text(found: dict[str, Any]) -> str:
    """Final regrets by regime, over delays too, and where the files are."""
    lines = []
    for regime, rows in found["regret"].items():
        lines.append(regime)
        lines += [
            f"  {name:<12}{row['mean']:>9,.1f} +- {row['sd']:.1f}" for name, row in rows.items()
        ]
    for regime, rows in found["by delay"].items():
        delays = next(iter(rows.values()))
        lines += ["", regime, f"  {'delay':<12}" + "".join(f"{delay:>16}" for delay in delays)]
        lines += [
            f"  {name:<12}"
            + "".join(f"{mean:>9,.1f} ±{high - mean:>5.1f}" for mean, _, high in row.values())
            for name, row in rows.items()
        ]
    return "\n".join([*lines, "", *found["files"]])
