"""Who plays in the studies: the paper's comparison, and two learners for stationary problems."""

from __future__ import annotations

from typing import Any

from jaxbio.learners.registry import make_learner

# Their regret is sublinear whatever the mapping does.
ROBUST = ("DAda-Exp3", "MetaBIO", "MetaAdaBIO")


def robust(delta: float = 0.1) -> dict[str, Any]:
    """A base and two wrappers; MetaAdaBIO by the practical rule, which switches at usual sizes."""
    options: dict[str, dict[str, Any]] = {"MetaAdaBIO": {"rule": "practical"}}
    return {
        name: make_learner(name.lower(), delta=delta, **options.get(name, {})) for name in ROBUST
    }


def contestants() -> dict[str, Any]:
    """The same, and two that count on a mapping that does not change."""
    return robust() | {"UCB1": make_learner("ucb1"), "NSD-UCRL2": make_learner("nsd-ucrl2")}
