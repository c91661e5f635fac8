"""How many runs the blocks of a sweep have."""

from __future__ import annotations

import pytest

from jaxbio.engine import widths
from jaxbio.engine.backends.layout import WIDTH


@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize("horizon", [50, 1_000, 10_000, 100_000])
@pytest.mark.parametrize("runs", [64, 96, 1_000, 2_048, 5_000, 100_000])
def test_workers_of_a_sweep_have_equally_much_to_play(
    runs: int, horizon: int, workers: int
) -> None:
    """The busiest has at most a tenth more than its share; with two blocks, half of all runs."""
    width = widths.side_by_side(runs, horizon, 1_000, "llvm")
    assert width % WIDTH == 0
    assert width <= widths.widest(horizon, 1_000, "llvm")
    blocks = -(-runs // width)
    turns = -(-blocks // workers)
    assert turns * width <= max(runs / workers * 1.1, runs / 2 + WIDTH, turns * WIDTH)


def test_two_workers_share_a_sweep_that_fits_one_block() -> None:
    assert widths.side_by_side(256, 100, 1_000, "llvm") == 128
