"""jaxbio regimes: stochastic and adversarial mappings and losses, all four pairs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import xarray as xr

from jaxbio.studies import parsing
from jaxbio.studies.outputs import named, parts, write
from jaxbio.studies.regimes.study import (
    DIFFERENCES,
    MEANS,
    checked_delays,
    play_delays,
    play_regimes,
)


def add(commands: Any) -> None:
    about = "mappings and losses, each stochastic or adversarial"
    example = "jaxbio regimes --runs 200 --delay 200"
    made = parsing.add_study(commands, "regimes", about, study, example, play_regimes)
    parsing.fixed(made, play_regimes)
    parsing.option(made, "--delays", play_delays, "of the 2nd figure", type=parsing.whole)


def study(options: Any) -> tuple[dict[str, Any], str]:
    """Play the four regimes, over rounds and over delays, write data and figures; what is found,
    and as text.
    """
    checked_delays(options.delays, options.horizon, options.runs)  # before anything is played
    sizes = {name: getattr(options, name) for name in ("horizon", "runs", "seed")}
    name = named(options.horizon, options.delay, options.delays, options.runs, options.seed)
    store, shown = parts(options, name), not options.quiet
    data = play_regimes(delay=options.delay, store=store / "rounds", progress=shown, **sizes)
    grown = play_delays(options.delays, store=store / "delays", progress=shown, **sizes)
    from jaxbio.studies.regimes.figure import delays, regimes  # matplotlib takes a while to import

    files = write(options.folder, name, {name: data}, "regret", partial(regimes, data))
    more = {f"{name}-delays": grown}
    files += write(options.folder, name, more, "delays", partial(delays, grown))
    found = {
        "files": files,
        "regret": finals(data),
        "by delay": by_delay(grown, MEANS),
        "reference": grown.attrs["reference"],
        "differences": by_delay(grown, DIFFERENCES),
    }
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


def by_delay(
    data: xr.Dataset, names: tuple[str, str, str]
) -> dict[str, dict[str, dict[str, list[float]]]]:
    """regime -> learner -> delay -> a mean with low and high, its 95 % interval. names: theirs."""
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
        lines += ["", regime, _row("delay", next(iter(rows.values())))]
        lines += [_row(name, map(_with_reach, row.values())) for name, row in rows.items()]
        lines += _compared(rows, found["differences"][regime], found["reference"])
    return "\n".join([*lines, "", *found["files"]])


def _compared(rows: dict[str, Any], differences: dict[str, Any], first: str) -> list[str]:
    """Differences to the first learner in the same runs; intervals as shares of its regret too."""
    others = {name: row for name, row in differences.items() if name != first}
    if not others:
        return []
    lines = [f"  more than {first} in the same runs, and the 95 % interval in % of its regret"]
    for name, row in others.items():
        lines.append(_row(name, map(_with_reach, row.values())))
        alone = [mean for mean, *_ in rows[first].values()]
        lines.append(_row("", map(_share, row.values(), alone)))
    return lines


def _with_reach(found: list[float]) -> str:
    mean, _, high = found
    return f"{mean:,.1f} ±{high - mean:>6.1f}"


def _share(found: list[float], alone: float) -> str:
    """An interval in % of a regret; of none there are no shares."""
    _, low, high = found
    return f"{100 * low / alone:+.1f} to {100 * high / alone:+.1f}" if alone > 0 else "-"


def _row(name: str, cells: Iterable[str]) -> str:
    return f"  {name:<12}" + "".join(f"{cell:>18}" for cell in cells)
