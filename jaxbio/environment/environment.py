"""The problem: a mapping, losses and delays, fixed before the first action (oblivious)."""

from __future__ import annotations

import dataclasses
import inspect
import types
from functools import cache, lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbio import checks, rng
from jaxbio.checks import memory
from jaxbio.core import Array, Delays, Losses, Mapping, looks, revealed
from jaxbio.display import html, text
from jaxbio.environment.mappings import AlternatingMapping, StochasticMapping, TableMapping
from jaxbio.ops import select
from jaxbio.trees import as_arrays, host, is_concrete, library_of, pytree, set_field

MAX_HORIZON = 2**30
OPTIONAL = ("in_force",)  # of the protocols: for a mapping with `costs`
WITHIN = (StochasticMapping, AlternatingMapping)  # reach no states that their arrays do not hold


@pytree
class Environment:
    """Any mapping, losses and delays together.

    real_states: the number of states S for formulas; the parts may hold more, padded ones.
    """

    mapping: Any
    losses: Any
    delays: Any
    real_states: Any = None

    def __post_init__(self) -> None:
        check_part("mapping", self.mapping, Mapping, "StochasticMapping(P)")
        check_part("losses", self.losses, Losses, "BernoulliLosses(theta)")
        check_part("delays", self.delays, Delays, "FixedDelay(50)")
        mapping, slots = self.mapping, self.losses.num_states
        if isinstance(mapping, TableMapping) and mapping.num_states < slots:
            set_field(self, "mapping", dataclasses.replace(mapping, num_states=slots))
        if self.mapping.num_states != slots:
            raise ValueError(
                f"mapping and losses must have the same number of states, but the mapping has "
                f"{self.mapping.num_states} and the losses have {slots}"
            )
        real = slots if self.real_states is None else self.real_states
        set_field(self, "real_states", checks.integer("real_states", real, 1, slots))
        told = getattr(self.delays, "num_states", None)
        if told is not None and told not in (slots, self.real_states):
            raise ValueError(
                f"delays must be those of {self.real_states} states, as the losses, but "
                f"{type(self.delays).__name__} has {told}"
            )
        everything = self.real_states == slots and type(mapping) in WITHIN
        if not everything and self.mapping.reached() > self.real_states:
            raise ValueError(
                f"the mapping reaches {self.mapping.reached()} states, but real_states is "
                f"{self.real_states}: states past it must have probability 0"
            )

    @property
    def num_actions(self) -> int:
        """K."""
        return self.mapping.num_actions

    @property
    def state_slots(self) -> int:
        """How many states the arrays hold, padding included."""
        return self.losses.num_states

    @property
    def num_states(self) -> int:
        """S."""
        return int(self.real_states)

    def __repr__(self) -> str:
        rows = [[f"  {name}", text.value(part)] for name, part in self._parts().items()]
        return "\n".join([f"Environment: {self._size()}", *text.aligned(rows, left=2)])

    def _repr_html_(self) -> str:
        rows = [(name, html.written(part)) for name, part in self._parts().items()]
        return html.titled("Environment", self._size()) + html.table([], rows, raw=True)

    def _size(self) -> str:
        states = text.value(self.real_states)  # a tracer inside of transformations
        return f"{self.num_actions} actions, {states} states"

    def _parts(self) -> dict[str, Any]:
        return {"mapping": self.mapping, "losses": self.losses, "delays": self.delays}

    def check(self, horizon: int) -> None:
        """Raise where a part cannot serve this horizon."""
        for part in (self.mapping, self.losses, self.delays):
            part.check(horizon)

    def state(self, key: Array, t: Array, action: Array) -> Array:
        """s_t(action)."""
        u = rng.state_uniform(key, t, action)
        return self.mapping.state(t, action, u, self.real_states)

    def pseudo_loss(self, t: Array, action: Array) -> Array:
        """The loss that the regime's regret counts (docs/pages/algorithms.md, "Regret").

        Random losses count with their mean, adversarial ones as they are; a random mapping is
        averaged over its states, an adversarial one is not.
        """
        return self.mapping.average(t, action, self.losses.means(t))

    def gaps(self, best: Any) -> Any:
        """[E, K]: what each action costs beyond the best one, where that does not change over the
        rounds of an environment; else None.
        """
        means = self.losses.all_means()
        costs = self.mapping.costs(means) if np.ndim(means) == 1 else None
        if costs is None:
            return None
        if isinstance(costs, np.ndarray) and is_concrete(best):
            return costs - costs[:, int(best), None]
        return jnp.asarray(costs) - jnp.asarray(costs)[:, best, None]

    def pseudo_regret(self, t: Array, action: Array, best: Array, gaps: Any) -> Array:
        """What `action` costs in round t beyond the best action of the horizon."""
        if gaps is None:
            return self.pseudo_loss(t, action) - self.pseudo_loss(t, best)
        return select(self.mapping.in_force(gaps, t), action)

    def best_action(self, horizon: Array) -> Array:
        """The action with the least total pseudo-loss over the whole horizon."""
        means = self.losses.all_means()
        means = host(means) if is_concrete(means) else means
        totals = self.mapping.totals(means, horizon)
        return library_of(totals).argmin(totals).astype(np.int32)

    def padded(self, slots: int) -> Environment:
        """The same problem in arrays of `slots` states: bit for bit the same games."""
        slots = checks.size("slots", slots, self.state_slots, rng.INDICES)
        if slots == self.state_slots:
            return self
        return dataclasses.replace(
            self,
            mapping=self.mapping.padded(slots),
            losses=self.losses.padded(slots),
        )


def check_part(name: str, part: Any, protocol: type, example: str) -> None:
    """Raise where a part is none, a class, not a pytree, or lacks what its protocol asks for."""
    doubtful = _in_doubt(type(part), protocol)
    missing = [one for one in doubtful if not checks.has(part, one)] if doubtful else doubtful
    if protocol is Delays and checks.has(part, "looks") and looks(part):
        own = [] if checks.has(part, "reveal") else ["reveal"]
        missing = [one for one in missing if one != "delay"] + own
    if isinstance(part, type) or (missing and len(missing) > len(_wanted(protocol)) / 2):
        raise TypeError(f"{name} must be such as {example}, but got {checks.shown(part)}")
    if missing:
        raise TypeError(
            f"{name} must be such as {example}, but {type(part).__name__} lacks "
            f"{', '.join(missing)} (see jaxbio.core.{protocol.__name__})"
        )
    checks.is_pytree(name, part)
    if protocol is Delays and looks(part) and (part.constant or part.written_down):
        raise ValueError(
            f"{name} that look at states and losses can be neither constant nor written down, but "
            f"{type(part).__name__} says that it is"
        )


@cache
def _wanted(protocol: type) -> list[str]:
    """The attributes that a protocol asks for."""
    names = [*getattr(protocol, "__annotations__", {}), *vars(protocol)]
    return [name for name in names if not name.startswith("_") and name not in OPTIONAL]


@lru_cache(maxsize=256)
def _in_doubt(cls: type, protocol: type) -> list[str]:
    """Those that an instance may lack, as its class has no such function or plain value."""
    own_rules = cls.__getattribute__ is not object.__getattribute__
    plain = (types.FunctionType, bool)
    return [
        name
        for name in _wanted(protocol)
        if own_rules or not isinstance(inspect.getattr_static(cls, name, None), plain)
    ]


def check_environment(env: Any, name: str = "env") -> None:
    if not isinstance(env, Environment):
        raise TypeError(f"{name} must be an Environment, but got {checks.shown(env)}")


def world_entries(env: Environment) -> int:
    """Numbers of a round in what `sample_world` returns."""
    late = 2 * env.state_slots if looks(env.delays) else 1  # delays, and what is shown
    return env.num_actions + env.state_slots + late


def sample_world(env: Environment, seed: Any, run: int, horizon: int) -> dict[str, np.ndarray]:
    """The whole world of one run, whatever is played in it.

    Returns states int32 [T, K] (s_t(a)), losses [T, S] (l_t(s)) and delays int32 [T]. Where the
    delays look at states and losses they are [T, S], and shown [T, S] is what a learner is shown of
    the losses.
    """
    check_environment(env)
    horizon = checks.size("horizon", horizon, 1, MAX_HORIZON)
    env.check(horizon)
    entries = horizon * world_entries(env)
    memory.refuse_table(f"a world of {horizon:,} rounds", entries, "a shorter horizon")
    key = rng.run_key(seed, checks.integer("run", run, 0))
    rounds = jnp.arange(1, horizon + 1, dtype=jnp.int32)
    actions = jnp.arange(env.num_actions, dtype=jnp.int32)
    slots = jnp.arange(env.state_slots, dtype=jnp.int32)
    env = as_arrays(env)

    def at(t: Array) -> dict[str, Array]:
        u = rng.round_uniforms(key, t)[1]
        states = jax.vmap(lambda a: env.state(key, t, a))(actions)
        losses = jax.vmap(lambda s: env.losses.loss(key, t, s, u))(slots)
        world = {"states": states, "losses": losses}
        if not looks(env.delays):
            return world | {"delays": env.delays.delay(key, t)}
        shown, delays = jax.vmap(partial(revealed, env.delays, key, t))(slots, losses)
        return world | {"delays": delays, "shown": shown}

    return jax.tree.map(np.asarray, jax.jit(jax.vmap(at))(rounds))
