"""Experiments 4 and 5: MetaAdaBIO switches where states are fewer than the delay, else it does not.

MetaAdaBIO runs its base with a third of delta until it switches, so its base is played beside it:
fed with the same random numbers, the two are equal to the bit up to the switch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from jaxbio.environment.delays import FixedDelay
from jaxbio.environment.instances import make_environment
from jaxbio.learners.registry import make_learner
from jaxbio.studies.paper.experiment import Experiment, Options, lower, with_and_without
from jaxbio.studies.paper.verdicts import FactClaim, MeanClaim

BASE = "MetaAdaBIO's base"


def learners(options: Options) -> dict[str, Any]:
    given = {"delta": options.delta, "tuning": options.tuning}
    return {
        **with_and_without(options),
        "MetaAdaBIO": make_learner("metaadabio", rule="practical", **given),
        BASE: make_learner("dada-exp3", **(given | {"delta": options.delta / 3})),
    }


def curves(data: xr.Dataset, learner: str) -> np.ndarray:
    """[runs, rounds]."""
    return data.regret.sel(learner=learner).transpose("run", "round").values


def switch(data: xr.Dataset) -> np.ndarray:
    """[runs]: the round at whose end MetaAdaBIO switched."""
    return data.switch_round.sel(learner="MetaAdaBIO").values


def equals_base_until_switch(data: xr.Dataset) -> np.ndarray:
    before = data["round"].values <= switch(data)[:, None]
    same = curves(data, "MetaAdaBIO") == curves(data, BASE)
    return (same | ~before).all(axis=1)


def growth_after_switch(data: xr.Dataset, learner: str) -> np.ndarray:
    """[runs]: regret that a learner adds in the second half of the game, after the switch."""
    regret = curves(data, learner)
    return regret[:, -1] - regret[:, regret.shape[1] // 2 - 1]


def aligned(data: xr.Dataset) -> np.ndarray:
    """[runs]: how much nearer its late growth is to MetaBIO's than to its base's, on average."""
    own, wrapped, base = (
        growth_after_switch(data, name) for name in ("MetaAdaBIO", "MetaBIO", BASE)
    )
    return (base - own) - (own - wrapped)


def switches(data: xr.Dataset) -> str:
    found = switch(data)[switch(data) <= data["round"].values[-1]]
    if not found.size:
        return "no run switched"
    return f"switch after round {found.min():,} to {found.max():,}"


SAME_BEFORE = FactClaim(
    "MetaAdaBIO equals its base up to the switch", equals_base_until_switch, switches
)


def claims_of_4(options: Options) -> list[Any]:
    return [
        FactClaim(
            "MetaAdaBIO switches within the horizon",
            lambda data: switch(data) <= options.horizon,
            switches,
        ),
        SAME_BEFORE,
        MeanClaim("after the switch MetaAdaBIO grows like MetaBIO, not like its base", aligned),
        lower("MetaAdaBIO", "DAda-Exp3"),
        lower("MetaBIO", "DAda-Exp3"),
    ]


def claims_of_5(options: Options) -> list[Any]:
    return [
        FactClaim(
            "MetaAdaBIO never switches",
            lambda data: switch(data) == options.horizon + 1,
            lambda data: f"{(switch(data) <= options.horizon).sum()} runs switched",
        ),
        SAME_BEFORE,
        lower("DAda-Exp3", "MetaBIO"),
        lower("MetaAdaBIO", "MetaBIO"),
    ]


FEW_STATES = Experiment(
    number=4,
    name="switch",
    title="MetaAdaBIO with few states",
    about="K = 4, S = 3, d = 20; MetaAdaBIO switches and aligns with MetaBIO",
    environment=lambda options: make_environment("paper-stochastic", delays=FixedDelay(20)),
    learners=learners,
    axes={},
    panels=None,
    claims=claims_of_4,
)

MANY_STATES = Experiment(
    number=5,
    name="no-switch",
    title="MetaAdaBIO with many states",
    about="K = 8, S = 14, d = 4; MetaAdaBIO never switches, MetaBIO is worse",
    environment=lambda options: make_environment("paper-utility", states=14, delays=FixedDelay(4)),
    learners=learners,
    axes={},
    panels=None,
    claims=claims_of_5,
)
