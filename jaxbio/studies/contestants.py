"""Who plays in the studies: the paper's comparison, and everybody worth asking for advice."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from jaxbio.core import Arrivals, Known, Play
from jaxbio.engine.protocol import restored, types_of
from jaxbio.environment.environment import Environment
from jaxbio.learners.bold import BOLD
from jaxbio.learners.exp3 import DAdaExp3, Exp3
from jaxbio.learners.metaadabio import MetaAdaBIO
from jaxbio.learners.metabio import MetaBIO
from jaxbio.learners.qpmd import QPMD
from jaxbio.learners.registry import make_learner
from jaxbio.learners.tsallis import TsallisINF
from jaxbio.trees import float_dtype

# Their regret is sublinear whatever the mapping does.
ROBUST = ("DAda-Exp3", "MetaBIO", "MetaAdaBIO")
UNIFORM = "uniform play"

# label -> name and options of a learner. The first ones win most often: a short answer should have
# them. Two are played together: of these the one with shorter games comes first.
EVERYBODY: dict[str, tuple[str, dict[str, Any]]] = {
    "Thompson sampling": ("thompson", {}),
    "StateThompson": ("state-thompson", {}),
    "NSD-UCRL2": ("nsd-ucrl2", {}),
    "NSD-UCRL2, radius x 0.3": ("nsd-ucrl2", {"radius_scale": 0.3}),
    "UCB1": ("ucb1", {}),
    "NSD-UCRL2, radius x 0.1": ("nsd-ucrl2", {"radius_scale": 0.1}),
    "UCB1, exploration 0.2": ("ucb1", {"exploration": 0.2}),
    "QPM-D UCB1": ("qpmd-ucb1", {}),
    "Hindsight-Tsallis": ("hindsight-tsallis", {}),
    "HindsightExp3": ("hindsight-exp3", {}),
    "HindsightExp3, rate x 3": ("hindsight-exp3", {"scale": 3.0}),
    "DAda-Exp3": ("dada-exp3", {}),
    "DAda-Exp3, rate x 3": ("dada-exp3", {"scale": 3.0}),
    "MetaBIO-mean": ("metabio-mean", {}),
    "MetaBIO-mean, rate x 3": ("metabio-mean", {"scale": 3.0}),
    "MetaBIO": ("metabio", {}),
    "MetaAdaBIO": ("metaadabio", {"rule": "practical"}),
    "Tsallis-INF": ("tsallis-inf", {}),
    "StateThompson, exact": ("state-thompson", {"sampler": "exact"}),
}
# Not as they are registered. Most have larger rates or smaller radii, and some of these fail in a
# few games of a hundred.
UNUSUAL = frozenset(label for label, (_, options) in EVERYBODY.items() if options)
QUICK = frozenset({"UCB1", "UCB1, exploration 0.2"})  # their games take a tenth of the others' time
SLOW = {"StateThompson, exact": 1e6}  # label -> the largest K S T at which it plays


def robust(delta: float = 0.1) -> dict[str, Any]:
    """A base and two wrappers; MetaAdaBIO by the practical rule, which switches at usual sizes."""
    return {label: _made(label, delta=delta) for label in ROBUST}


def wrappers(delta: float = 0.1) -> dict[str, Any]:
    """The two of `robust` that look at states, each around a base."""
    return {name: learner for name, learner in robust(delta).items() if hasattr(learner, "base")}


def uniform_play() -> dict[str, Any]:
    """One that never learns, to compare with."""
    return {UNIFORM: Exp3(rate=1e-9)}


def is_robust(learner: Any) -> bool:
    """Is its regret bounded whatever the mapping does? A wrapper's is where its base's is, and with
    lower confidence bounds, or plain means over Tsallis-INF; Exp3's at its own rate.
    """
    if isinstance(learner, MetaBIO | MetaAdaBIO):
        fed = learner.estimator == "lcb" or isinstance(learner.base, TsallisINF)
        return fed and getattr(learner, "delay", None) is None and is_robust(learner.base)
    if isinstance(learner, BOLD):
        return is_robust(learner.base)
    if isinstance(learner, Exp3):
        return learner.rate is None
    return isinstance(learner, DAdaExp3 | TsallisINF)


def contestants() -> dict[str, Any]:
    """The same, and two that count on a mapping that does not change."""
    return robust() | {label: _made(label) for label in ("UCB1", "NSD-UCRL2")}


def everybody(size: float = 0.0) -> dict[str, Any]:
    """Learners in their usual form, some also in a bolder one that may pay in practice; those that
    have a delta with 0.1. MetaAdaBIO goes by the practical rule. size: K S T; where it is large,
    without those that would take all the time (`SLOW`).
    """
    return {label: _made(label) for label in EVERYBODY if size <= SLOW.get(label, size)}


def _made(label: str, **more: Any) -> Any:
    name, options = EVERYBODY[label]
    return make_learner(name, **options, **more)


def asked_as(label: str) -> str | None:
    """What one of `everybody` is called on the command line; None for others."""
    if label not in EVERYBODY:
        return None
    name, options = EVERYBODY[label]
    words = [f"{option}={value}" for option, value in options.items()]
    return f"{name}:{','.join(words)}" if words else name


def looks_at_states(learner: Any, env: Environment) -> bool:
    """Does anything that it does depend on the states it sees? Found by tracing its `learn`; what
    QPM-D and BOLD pass on, their base decides.
    """
    if isinstance(learner, QPMD | BOLD):
        return looks_at_states(learner.base, env)
    states, horizon, delay = jnp.int32(env.num_states), jnp.int32(2), jnp.int32(-1)
    known = Known(states, horizon, delay, env.num_actions, env.state_slots, 2)
    types = types_of(learner, known)

    def learn(states: Any, rest: Any) -> Any:
        state, t, (action, loss, ticket), due = rest
        lanes = jax.tree.map(lambda x: jnp.stack([x, x]), (action, loss, ticket))
        play = Play(action, states[0], loss, ticket)
        arrivals = Arrivals(Play(lanes[0], states[1], lanes[1], lanes[2]), due)
        return learner.learn(restored(types, state), t, play, arrivals)

    number = jax.ShapeDtypeStruct((), float_dtype())
    index = jax.ShapeDtypeStruct((), jnp.int32)
    seen = index, jax.ShapeDtypeStruct((2,), jnp.int32)
    rest = types.state, index, (index, number, types.ticket), jax.ShapeDtypeStruct((2,), bool)
    jaxpr = jax.make_jaxpr(learn)(seen, rest).jaxpr
    needed = set(map(id, jaxpr.outvars))
    for eqn in reversed(jaxpr.eqns):
        if needed & set(map(id, eqn.outvars)):
            needed |= set(map(id, eqn.invars))
    return bool(needed & set(map(id, jaxpr.invars[:2])))
