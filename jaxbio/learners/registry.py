"""Ready pairings by name; a wrapper and its base share delta as the paper's theorems have it."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

from jaxbio import checks
from jaxbio.core import Learner
from jaxbio.learners.bold import BOLD
from jaxbio.learners.elimination import SuccessiveElimination
from jaxbio.learners.exp3 import DAdaExp3, Exp3
from jaxbio.learners.metaadabio import AT_SWITCH, MetaAdaBIO
from jaxbio.learners.metabio import MetaBIO
from jaxbio.learners.nsd import NSDUCRL2
from jaxbio.learners.qpmd import QPMD
from jaxbio.learners.restarting import Restarting
from jaxbio.learners.thompson import ThompsonSampling
from jaxbio.learners.tsallis import TsallisINF
from jaxbio.learners.ucb import UCB1


def dada_exp3(delta: Any = 0.1, tuning: str = "corrected", scale: Any = 1.0) -> DAdaExp3:
    """DAda-Exp3 alone: delta' = delta / 2."""
    return DAdaExp3(delta, tuning, scale=scale)


def dada_exp3_skipping(
    delta: Any = 0.1, tuning: str = "corrected", skipped: str = "kept", scale: Any = 1.0
) -> DAdaExp3:
    """DAda-Exp3 that stops counting rounds that are outstanding for too long."""
    return DAdaExp3(delta, tuning, True, skipped, scale)


def metabio(
    delta: Any = 0.1,
    tuning: str = "corrected",
    skipping: bool = False,
    skipped: str = "kept",
    scale: Any = 1.0,
    estimator: str = "lcb",
    threshold: str = "outstanding",
    ordering: str = "together",
    radius: str = "horizon",
    radius_scale: Any = 1.0,
    delay: Any = None,
) -> MetaBIO:
    """MetaBIO(delta) over DAda-Exp3(delta / 2)."""
    delta = checks.probability_of_error("delta", delta)
    base = DAdaExp3(delta / 2, tuning, skipping, skipped, scale)
    return MetaBIO(
        base, delta, estimator, threshold, ordering, radius, radius_scale=radius_scale, delay=delay
    )


def metabio_skipping(
    delta: Any = 0.1,
    tuning: str = "corrected",
    skipped: str = "kept",
    scale: Any = 1.0,
    estimator: str = "lcb",
    threshold: str = "outstanding",
    ordering: str = "together",
    radius: str = "horizon",
    radius_scale: Any = 1.0,
    delay: Any = None,
) -> MetaBIO:
    """MetaBIO over DAda-Exp3 with skipping."""
    return metabio(
        delta,
        tuning,
        True,
        skipped,
        scale,
        estimator,
        threshold,
        ordering,
        radius,
        radius_scale,
        delay,
    )


def metabio_tsallis(
    delta: Any = 0.1,
    tuning: str = "simple",
    scale: Any = 1.0,
    estimator: str = "mean",
    ordering: str = "together",
) -> MetaBIO:
    """MetaBIO over Tsallis-INF with plain means: the expectation version."""
    return MetaBIO(TsallisINF(tuning, scale), delta, estimator, ordering=ordering)


def metaadabio(
    delta: Any = 0.1,
    tuning: str = "corrected",
    skipping: bool = False,
    skipped: str = "kept",
    scale: Any = 1.0,
    rule: str = "theory",
    at_switch: str = "learner",
    estimator: str = "lcb",
    ordering: str = "together",
    radius: str = "horizon",
    literal: bool = False,
    radius_scale: Any = 1.0,
    switch_scale: Any = 1.0,
    doubling: Any = None,
) -> MetaAdaBIO:
    """MetaAdaBIO(delta) over DAda-Exp3(delta / 3); after a fresh switch DAda-Exp3(delta / 4)."""
    delta = checks.probability_of_error("delta", delta)
    base = DAdaExp3(delta / 3, tuning, skipping, skipped, scale)
    fresh = checks.choice("at_switch", at_switch, AT_SWITCH) == "fresh"
    after = dataclasses.replace(base, delta=delta / 4) if fresh else None
    return MetaAdaBIO(
        base,
        delta,
        rule,
        at_switch,
        estimator,
        ordering,
        radius,
        literal,
        radius_scale=radius_scale,
        switch_scale=switch_scale,
        doubling=doubling,
        after=after,
    )


def metaadabio_tsallis(
    delta: Any = 0.1,
    tuning: str = "simple",
    scale: Any = 1.0,
    rule: str = "expected",
    at_switch: str = "learner",
    ordering: str = "together",
    switch_scale: Any = 1.0,
    doubling: Any = None,
) -> MetaAdaBIO:
    """MetaAdaBIO over Tsallis-INF with plain means and the expectation rule."""
    return MetaAdaBIO(
        TsallisINF(tuning, scale),
        delta,
        rule=rule,
        at_switch=at_switch,
        estimator="mean",
        ordering=ordering,
        switch_scale=switch_scale,
        doubling=doubling,
    )


def qpmd_ucb1(exploration: Any = 2.0) -> QPMD:
    """QPM-D over UCB1."""
    return QPMD(UCB1(exploration))


def bold_exp3(
    rate: Any = None, scale: Any = 1.0, copies: int | None = None, horizon: Any = None
) -> BOLD:
    """BOLD over Exp3; its default rate is tuned for `horizon` rounds of each copy."""
    return BOLD(Exp3(rate, scale=scale), copies, horizon)


def metabio_restarting(
    period: Any = 1000,
    delta: Any = 0.1,
    tuning: str = "corrected",
    scale: Any = 1.0,
    estimator: str = "lcb",
) -> MetaBIO:
    """MetaBIO(delta) over a DAda-Exp3(delta / 2) that begins anew every `period` rounds."""
    delta = checks.probability_of_error("delta", delta)
    base = Restarting(DAdaExp3(delta / 2, tuning, scale=scale), period)
    return MetaBIO(base, delta, estimator)


LEARNERS: dict[str, Callable[..., Any]] = {
    "dada-exp3": dada_exp3,
    "dada-exp3-skipping": dada_exp3_skipping,
    "tsallis-inf": TsallisINF,
    "ucb1": UCB1,
    "nsd-ucrl2": NSDUCRL2,
    "thompson": ThompsonSampling,
    "exp3": Exp3,
    "metabio": metabio,
    "metabio-skipping": metabio_skipping,
    "metabio-tsallis": metabio_tsallis,
    "metaadabio": metaadabio,
    "metaadabio-tsallis": metaadabio_tsallis,
    "successive-elimination": SuccessiveElimination,
    "qpmd-ucb1": qpmd_ucb1,
    "bold-exp3": bold_exp3,
    "metabio-restarting": metabio_restarting,
}


def learner_names() -> tuple[str, ...]:
    """The names that `make_learner` knows."""
    return tuple(LEARNERS)


def make_learner(name: str, **options: Any) -> Learner:
    """A ready learner; see `learner_names()` and the functions of this module."""
    build = LEARNERS[checks.choice("learner name", name, learner_names())]
    checks.options(name, options, inspect.signature(build))
    return build(**options)
