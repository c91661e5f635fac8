"""Make the figures that the README and the documentation show: all, or those that are named.

    python scripts/update_figures.py rates.png beyond.png

Studies leave their parts in results/, so an interrupted call goes on. Together they take about half
an hour of processor time.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
ASSETS = ROOT / "docs" / "pages" / "assets"


class Shown(NamedTuple):
    """A figure: the command that makes it, and the file, or how its name ends among those made."""

    command: str
    made: str


TUNE = (
    "jaxbio tune paper-stochastic metabio --param scale=1 --param radius_scale=1 --delay 50 "
    "--runs 2048 --steps 60 --held-out 16384 --figure results/tune/tuning.png"
)
GUARANTEES = "jaxbio guarantees --horizons 500 2000 10000 --deltas 0.1 0.01 0.001 --runs 100000"
CAN_FAIL = (
    "jaxbio guarantees --set actions 2 --set states 2 --set reach 0 --set good 0.1 --delay 5 "
    "--horizons 1000 2000 5000 --deltas 0.1 0.01 0.001 --runs 100000"
)
RATES = (
    "jaxbio rates --runs 1600 --horizons 1000 2000 4000 8000 16000 32000 "
    "--states 4 8 16 32 64 128 --delays 8 16 32 64 128 256 --actions 4 8 16 32 64"
)
SIZES = "jaxbio phase --grid medium --actions 2 8 32 --horizon 2000 20000 --runs 128"
ADVISE = (
    "jaxbio advise --actions 8 --states 12 --horizon 100000 --delay laplace:50,25 "
    "--figure results/advice.png"
)
CONTESTANTS = (
    "jaxbio run paper-stochastic dada-exp3 metabio ucb1 qpmd-ucb1 bold-exp3:horizon=196 "
    "successive-elimination successive-elimination:scale=0.3 --delay 50 --runs 500 "
    "--figure results/contestants.png"
)
REGIMES = "jaxbio regimes --runs 400 --horizon 50000"

FIGURES = {  # in the documentation's assets
    "experiment1.png": Shown(
        "jaxbio reproduce 1", "results/paper/figures/experiment-1-regret-light.png"
    ),
    "worth.png": Shown("jaxbio phase --tuned --runs 256 --training 512", "-worth-light.png"),
    "worth-dark.png": Shown("jaxbio phase --tuned --runs 256 --training 512", "-worth-dark.png"),
    "phase-wide.png": Shown("jaxbio phase --grid wide --runs 300", "-phase-light.png"),
    "phase-full.png": Shown("jaxbio phase --grid full --runs 300", "-phase-light.png"),
    "phase-sizes.png": Shown(SIZES, "-phase-MetaBIO-light.png"),
    "phase-sizes-metaadabio.png": Shown(SIZES, "-phase-MetaAdaBIO-light.png"),
    "phase-random.png": Shown(
        "jaxbio phase --grid medium --family random --runs 32", "-phase-light.png"
    ),
    "advice.png": Shown(ADVISE, "results/advice.png"),
    "guarantees.png": Shown(GUARANTEES, "-bounds-light.png"),
    "guarantees-can-fail.png": Shown(CAN_FAIL, "-bounds-light.png"),
    "rates.png": Shown(RATES, "-slopes-light.png"),
    "regimes.png": Shown(REGIMES, "-regret-light.png"),
    "regimes-delays.png": Shown(REGIMES, "-delays-light.png"),
    "beyond.png": Shown("jaxbio beyond --runs 200", "-regret-light.png"),
    "contest-fixed.png": Shown("jaxbio contest", "-fixed-light.png"),
    "contest-tuned.png": Shown("jaxbio contest", "-tuned-light.png"),
    "violations.png": Shown("jaxbio violations --runs 256", "-risk-light.png"),
    "violations-blind.png": Shown(
        "jaxbio violations --against blind --runs 256", "-risk-light.png"
    ),
    "contestants.png": Shown(CONTESTANTS, "results/contestants.png"),
    "tuning.png": Shown(TUNE, "results/tune/tuning.png"),
}


def make(shown: Shown) -> Path:
    """Run the command; the file that it made."""
    words = [sys.executable, "-m", *shlex.split(shown.command), "--json"]
    done = subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    if not shown.made.startswith("-"):
        return ROOT / shown.made
    return ROOT / next(f for f in json.loads(done.stdout)["files"] if f.endswith(shown.made))


def main() -> None:
    for name in sys.argv[1:] or FIGURES:
        if name not in FIGURES:
            raise SystemExit(f"{name!r} must be one of {', '.join(FIGURES)}")
        shutil.copyfile(make(FIGURES[name]), ASSETS / name)
        print(ASSETS / name)


if __name__ == "__main__":
    main()
