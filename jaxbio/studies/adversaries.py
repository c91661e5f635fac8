"""Problems whose losses an adversary draws before the game: played in independent instances."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import xarray as xr

from jaxbio import rng
from jaxbio.storage.store import part
from jaxbio.sweeps.sweep import sweep
from jaxbio.sweeps.workers import bar

RUNS_PER_INSTANCE = 8


def coins(key: Any) -> int:
    """The seed of an adversary: the two words of a key as one integer."""
    high, low = (int(word) for word in rng.root_words(key))
    return high << 32 | low


def play_instances(
    environment: Callable[[int], Any],
    count: int,
    *,
    runs: int = RUNS_PER_INSTANCE,
    seed: int,
    store: Path | None,
    progress: bool,
    **given: Any,
) -> xr.DataArray:
    """[..., instance]: mean final regret over the runs of each instance.

    An instance has a stream of the root seed of its own, for the adversary's coins and for the
    runs, so that instances are independent; its learners meet the same runs. environment: coins ->
    what `sweep` takes. given: of `sweep`.
    """
    means = []
    with bar(count, progress, desc="instances") as shown:
        for number in range(count):
            key = rng.stream_key(seed, number)
            data = sweep(
                environment(coins(key)),
                runs=runs,
                seed=key,
                store=part(store, f"instance-{number}"),
                progress=False,
                **given,
            )
            means.append(data.final_regret.mean("run"))
            shown.update(1)
    return xr.concat(means, "instance").transpose(..., "instance")
