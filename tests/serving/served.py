"""What the tests of agents share: worlds in which an agent is played as a simulation is.

The games are those that the protocol's tests simulate, so that they are compiled once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import jaxbio as jb

HORIZON, SEED, RUN = 60, 0, 1
MAPPING, THETA = [[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]], [0.1, 0.8]
COSTS = np.array(MAPPING) @ THETA  # all different, so that regret tells the action
ENV, LATE = (
    jb.Environment(jb.StochasticMapping(MAPPING), jb.BernoulliLosses(THETA), delays)
    for delays in (jb.FixedDelay(3), jb.UniformDelay(0, 4))
)
ACTIONS, STATES = ("autumn", "bundle", "voucher"), ("bounced", "cart")

_worlds: dict[int, dict[str, Any]] = {}


def world(env: jb.Environment) -> dict[str, Any]:
    """What the run meets, as lists: states [T][K], losses [T][S], delays [T]."""
    if id(env) not in _worlds:
        found = jb.sample_world(env, SEED, RUN, HORIZON)
        _worlds[id(env)] = {name: np.asarray(value).tolist() for name, value in found.items()}
    return _worlds[id(env)]


def agent(env: jb.Environment, learner: Any, **options: Any) -> jb.Agent:
    """What `simulate` tells a learner of the environment, and its uniforms."""
    delay = env.delays.longest() if env.delays.constant else None
    given = {"delay": delay, "longest": env.delays.longest(), "seed": SEED, "run": RUN} | options
    return jb.Agent(learner, ACTIONS, STATES, HORIZON, **given)


def rounds(one: jb.Agent, count: int) -> list[int]:
    """The tickets of so many rounds, one after the other, that all show the last state."""
    tickets = []
    for _ in range(count):
        tickets.append(one.select()[1])
        one.see(tickets[-1], STATES[-1])
    return tickets


def played(
    one: jb.Agent,
    env: jb.Environment,
    first: int = 1,
    last: int = HORIZON,
    due: dict[int, list[tuple[int, float]]] | None = None,
) -> list[int]:
    """The actions of rounds first .. last, every loss after its delay.

    due: by round, tickets and losses that come at its end; what is left of them stays there.
    """
    chosen, due, met = [], {} if due is None else due, world(env)
    for t in range(first, last + 1):
        action, ticket = one.select()
        chosen.append(ACTIONS.index(action))
        state = met["states"][t - 1][chosen[-1]]
        one.see(ticket, STATES[state])
        loss = met["losses"][t - 1][state]
        due.setdefault(t + met["delays"][t - 1], []).append((ticket, loss))
        for mine, lost in reversed(due.pop(t, [])):  # in which order they come does not matter
            one.observe(mine, lost)
    return chosen
