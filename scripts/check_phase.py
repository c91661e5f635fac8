"""Find three places of the phase diagram's line with the plain-Python oracle of the tests.

    python scripts/check_phase.py [--runs 160] [--horizon 10000]

Two are on the near side and one is on the far side of the delays at which MetaBIO helps (K = 8).
The package plays these rows of the wide grid and finds the line with its band, as in the figure.
The oracle shares no code with the package and plays in worlds of its own, 20 % left and right of
the line, MetaBIO and its base in the same worlds. Its own crossing lies where the logarithm of the
ratio, straight between these two delays, is 0; the standard error comes from those of both ratios
(delta method). The script fails where the oracle's crossing is more than three standard errors
outside the band (by chance: once in 120 times, three checks together).
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import jaxbio as jb
from jaxbio.commands.phase import GRIDS
from jaxbio.lab.contestants import wrappers
from jaxbio.lab.phase import helpful_delays

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from utility_oracle import final_regret, log_ratio  # pyright: ignore[reportMissingImports]

PLACES = ((4, "from"), (8, "from"), (3, "to"))  # S, and which end of the helpful delays
ACTIONS = 8
BESIDE = 1.2  # how far from the line the oracle plays
ALARM = 3.0  # standard errors


def band(states: int, end: str, horizon: int) -> tuple[float, float, float]:
    """The package's line, and the least and the greatest delay of its band."""
    data = jb.phase_diagram(
        [states],
        GRIDS["wide"][1],
        actions=[ACTIONS],
        horizons=[horizon],
        runs=300,
        learners={"MetaBIO": wrappers()["MetaBIO"]},
        progress=False,
    )
    ends = helpful_delays(data, "MetaBIO").squeeze().sel(end=end)
    low, high = sorted(ends.sel(reach=["surely", "perhaps"]).values.tolist())
    return float(ends.sel(reach="line")), low, high


def crossing(places: np.ndarray, ratios: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """Where the line through two log-ratios is 0, and its standard error. All arrays are [2]."""
    (x0, x1), (y0, y1) = places, ratios
    slope = (y1 - y0) / (x1 - x0)
    found = x0 - y0 / slope
    weights = np.array([x1 - found, found - x0]) / (x1 - x0)
    return found, float(np.linalg.norm(weights * errors) / abs(slope))


def oracle(states: int, line: float, horizon: int, runs: int) -> tuple[float, float]:
    """The oracle's crossing near a line, as the logarithm of a delay, and its standard error."""
    delays = [round(line / BESIDE), round(line * BESIDE)]
    found = []
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        for delay in delays:
            size = {"actions": ACTIONS, "states": states, "delay": delay, "horizon": horizon}
            tasks = zip(*np.ndindex(2, runs), strict=True)
            finals = list(pool.map(partial(final_regret, **size), *tasks, chunksize=4))
            found.append(log_ratio(np.reshape(finals, (2, -1)), paired=True))
    ratios, errors = np.transpose(found)
    print(f"S = {states}: ratios of the oracle " + ", ".join(
        f"{np.exp(ratio):.3f} +- {1.96 * error:.3f} at d = {delay}"
        for delay, ratio, error in zip(delays, ratios, errors, strict=True)
    ))  # fmt: skip
    return crossing(np.log(delays), ratios, errors)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=160, help="of the oracle")
    parser.add_argument("--horizon", type=int, default=10_000)
    options, failed = parser.parse_args(), False
    for states, end in PLACES:
        line, low, high = band(states, end, options.horizon)
        found, error = oracle(states, line, options.horizon, options.runs)
        outside = max(np.log(low) - found, found - np.log(high), 0) / error
        failed |= outside > ALARM
        least, own, most = (np.exp(found + part * error) for part in (-1.96, 0, 1.96))
        print(f"S = {states}, {end}: line {line:,.0f}, band {low:,.0f} to {high:,.0f}")
        print(f"  oracle {own:,.0f} ({least:,.0f} to {most:,.0f}), {outside:.1f} standard errors "
              "outside the band", flush=True)  # fmt: skip
    sys.exit("the oracle contradicts the phase diagram" if failed else 0)


if __name__ == "__main__":
    main()
