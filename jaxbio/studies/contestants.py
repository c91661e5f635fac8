"""Who plays in the studies: the paper's comparison, and two learners for stationary problems."""

from __future__ import annotations

from typing import Any

from jaxbio.learners.bold import BOLD
from jaxbio.learners.exp3 import DAdaExp3, Exp3
from jaxbio.learners.metaadabio import MetaAdaBIO
from jaxbio.learners.metabio import MetaBIO
from jaxbio.learners.registry import make_learner
from jaxbio.learners.tsallis import TsallisINF

# Their regret is sublinear whatever the mapping does.
ROBUST = ("DAda-Exp3", "MetaBIO", "MetaAdaBIO")
UNIFORM = "uniform play"


def robust(delta: float = 0.1) -> dict[str, Any]:
    """A base and two wrappers; MetaAdaBIO by the practical rule, which switches at usual sizes."""
    options: dict[str, dict[str, Any]] = {"MetaAdaBIO": {"rule": "practical"}}
    return {
        name: make_learner(name.lower(), delta=delta, **options.get(name, {})) for name in ROBUST
    }


def wrappers(delta: float = 0.1) -> dict[str, Any]:
    """The two of `robust` that look at states, each around a base."""
    return {name: learner for name, learner in robust(delta).items() if hasattr(learner, "base")}


def uniform_play() -> dict[str, Any]:
    """One that never learns, to compare with."""
    return {UNIFORM: Exp3(rate=1e-9)}


def is_robust(learner: Any) -> bool:
    """Is its regret sublinear whatever the mapping does? A wrapper's is where its base's is."""
    if isinstance(learner, MetaBIO | MetaAdaBIO | BOLD):
        return is_robust(learner.base)
    return isinstance(learner, DAdaExp3 | TsallisINF | Exp3)


def contestants() -> dict[str, Any]:
    """The same, and two that count on a mapping that does not change."""
    return robust() | {"UCB1": make_learner("ucb1"), "NSD-UCRL2": make_learner("nsd-ucrl2")}
