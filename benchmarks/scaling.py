"""How the cost of a round grows with K, S, d, T, width, and workers or devices.

    python -m benchmarks.scaling [--quick] [--only horizon delay] [--png results/scaling.png]

Six panels, one quantity each, everything else as usual (K = 8, S = 4, d = 50, T = 10,000). The
points of a line take turns and the best time of each counts. For T the number of runs shrinks as T
grows, so that every point is the same work. Devices are forced CPU devices, each number of
them in a process of its own.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import machine, measure

LINES = {  # label: learner, are the delays random?
    "DAda-Exp3, fixed": ("dada-exp3", False),
    "MetaBIO, fixed": ("metabio", False),
    "MetaBIO, Laplace": ("metabio", True),
}
DEVICES = ", by devices"


@dataclass(frozen=True)
class Panel:
    """One quantity and its values; `flat` is how much a cost may change, if that is a target."""

    quantity: str
    label: str
    values: Sequence[int]
    flat: float | None = None


PANELS = (
    Panel("actions", "actions K", (2, 4, 8, 16, 32, 64)),
    Panel("states", "states S", (2, 4, 8, 16, 32, 64)),
    Panel("delay", "delay d", (1, 10, 100, 1_000, 10_000), flat=1.3),
    Panel("horizon", "rounds T", (1_000, 10_000, 100_000, 1_000_000), flat=1.1),
    Panel("width", "width of a block", (8, 16, 32, 64, 128, 256, 512)),
    Panel("workers", "workers, or devices", (1, 2, 4)),
)


@dataclass(frozen=True)
class Setting:
    """One point."""

    learner: str
    random: bool
    actions: int = 8
    states: int = 4
    delay: int = 50
    horizon: int = 10_000
    runs: int = 1024
    width: int | None = None
    workers: int | None = None

    def play(self) -> np.ndarray:
        """Laplace delays have the scale 25 of the paper, or d / 2 if that is less."""
        import jaxbio as jb

        d = self.delay
        delays = jb.LaplaceDelay(d, min(25, d / 2)) if self.random else jb.FixedDelay(d)
        env = jb.make_environment(
            "paper-utility", delays=delays, actions=self.actions, states=self.states
        )
        options = {"horizon": self.horizon, "runs": self.runs, "width": self.width}
        return measure.simulate(self.learner, None, env, workers=self.workers, **options)


def setting(panel: Panel, value: int, learner: str, random: bool, rounds: int) -> Setting:
    """The point of a panel at this value. rounds: of all runs together, where they are counted."""
    usual = Setting(learner, random, **{panel.quantity: value})
    match panel.quantity:
        case "horizon":  # the same work everywhere, in at least two blocks
            return vary(usual, runs=256 * max(panel.values) // value)
        case "delay":  # long enough that losses arrive
            horizon = 2 * max(panel.values)
            return vary(usual, horizon=horizon, runs=max(256, rounds // horizon))
        case "width":
            return vary(usual, runs=max(2 * max(panel.values), rounds // usual.horizon))
    return vary(usual, runs=max(256, rounds // usual.horizon))


def vary(usual: Setting, **changes: Any) -> Setting:
    return Setting(**{**vars(usual), **changes})


def costs(settings: Sequence[Setting], repeats: int) -> list[float]:
    """Nanoseconds per round and run of each point, taking turns after a first call of each."""
    for point in settings:
        point.play()
    best = measure.in_turns({i: point.play for i, point in enumerate(settings)}, repeats)
    return [
        measure.nanoseconds(best[i][0], point.runs, point.horizon)
        for i, point in enumerate(settings)
    ]


def line(panel: Panel, label: str, options: Any) -> list[float]:
    """ns at every value of the panel."""
    points = [setting(panel, v, *LINES[label], options.rounds) for v in panel.values]
    print(f"{panel.label}: {label} ...", flush=True)
    return costs(points, options.repeats)


def device_lines(panel: Panel, options: Any) -> dict[str, list[float]]:
    """The lines of the last panel with devices in place of workers."""
    found = []
    for devices in panel.values:
        print(f"{devices} devices ...", flush=True)
        flags = f"--xla_force_host_platform_device_count={devices}"
        found.append(
            measure.in_fresh_process(
                "benchmarks.scaling",
                *("--child", "--rounds", options.rounds, "--repeats", options.repeats),
                XLA_FLAGS=f"{os.environ.get('XLA_FLAGS', '')} {flags}",
            )
        )
    return {label + DEVICES: [ns[i] for ns in found] for i, label in enumerate(LINES)}


def child(options: Any) -> None:
    """Print the costs [lines] with one worker for each device of this process as JSON."""
    import jax

    settings = {
        "runs": max(256, options.rounds // Setting.horizon),
        "workers": len(jax.local_devices()),
    }
    points = [Setting(*line, **settings) for line in LINES.values()]
    print(json.dumps(costs(points, options.repeats)))


def measured(panels: Sequence[Panel], options: Any) -> dict[str, dict[str, list[float]]]:
    """ns by quantity and line."""
    results = {p.quantity: {label: line(p, label, options) for label in LINES} for p in panels}
    for panel in panels:
        if panel.quantity == "workers":
            results["workers"] |= device_lines(panel, options)
    return results


def table(panels: Sequence[Panel], results: dict[str, dict[str, list[float]]]) -> str:
    """How much each line changes, from its cheapest to its dearest point."""
    rows = []
    for panel in panels:
        for label, ns in results[panel.quantity].items():
            change = max(ns) / min(ns)
            target = "-" if panel.flat is None else f"flat within {panel.flat:g}x"
            reached = "-" if panel.flat is None else "yes" if change <= panel.flat else "no"
            span = f"{min(panel.values):,} to {max(panel.values):,}"
            cells = (f"{ns[0]:.1f}", f"{ns[-1]:.1f}", f"{change:.2f}x", target, reached)
            rows.append((panel.label, label, span, *cells))
    header = "quantity | line | from, to | first ns | last ns | max / min | target | reached"
    return measure.markdown(header, rows, left=3)


def draw(panels: Sequence[Panel], results: dict[str, dict[str, list[float]]], path: Path) -> None:
    """The panels with one scale of costs, and one legend below them."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    size = (4 * columns, 3.6 * rows + 0.4)
    figure, axes = plt.subplots(
        rows, columns, figsize=size, sharey=True, layout="constrained", squeeze=False
    )
    for place, panel in zip(axes.flat, panels, strict=False):
        draw_panel(place, panel, results[panel.quantity])
    for place in axes.flat[len(panels) :]:
        place.remove()
    for row in axes:
        row[0].set_ylabel("ns per round and run", fontsize=12)
    handles, labels = axes.flat[len(panels) - 1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=11)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def draw_panel(axes: Any, panel: Panel, lines: dict[str, list[float]]) -> None:
    """Both axes logarithmic; the values of the quantity as ticks."""
    from matplotlib.ticker import LogLocator

    from jaxbio.figures.style import LEARNER_COLOURS, SPARE_COLOURS

    usual = [LEARNER_COLOURS["DAda-Exp3"], LEARNER_COLOURS["MetaBIO"], SPARE_COLOURS[2]]
    colours = dict(zip(LINES, usual, strict=True))
    for label, ns in lines.items():
        forced = label.endswith(DEVICES)
        axes.plot(
            panel.values,
            ns,
            label=label,
            color=colours[label.removesuffix(DEVICES)],
            linestyle="--" if forced else "-",
            marker="s" if forced else "o",
            markersize=5,
            linewidth=1.6,
        )
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel(panel.label, fontsize=12)
    axes.set_xticks(panel.values, [f"{value:,}" for value in panel.values])
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.minorticks_off()
    axes.tick_params(labelsize=10)
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)


def arguments() -> Any:
    parser = measure.parser(__doc__, "scaling")
    parser.add_argument("--png", type=Path, default=Path("results/scaling.png"))
    parser.add_argument("--rounds", type=int, default=10_000_000, help="of all runs of a point")
    parser.add_argument("--repeats", type=int, default=3, help="timings; the best counts")
    names = [panel.quantity for panel in PANELS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="these panels")
    parser.add_argument("--quick", action="store_true", help="the smallest values, few rounds")
    parser.add_argument("--child", action="store_true", help="(internal) on this many devices")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.repeats = 100_000, 1
    return options


def shortened(panel: Panel) -> Panel:
    """Only the first three values."""
    return Panel(panel.quantity, panel.label, panel.values[:3], panel.flat)


def main() -> None:
    options = arguments()
    if options.child:
        child(options)
        return
    print(machine.one_line(), flush=True)
    panels = [panel for panel in PANELS if panel.quantity in options.only]
    panels = [shortened(panel) for panel in panels] if options.quick else panels
    results = measured(panels, options)
    draw(panels, results, options.png)
    print(f"\n{table(panels, results)}")
    values = {panel.quantity: panel.values for panel in panels}
    measure.save(options.json, values=values, ns_per_round=results)


if __name__ == "__main__":
    main()
