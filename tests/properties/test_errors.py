"""Bad input is refused at the front door, in words that name the argument, the value, the remedy.

Every call here fails before anything is traced, so that no test compiles a program.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import xarray as xr

import jaxbio as jb
from jaxbio import plot, rng
from jaxbio.cli import main as cli
from jaxbio.core import Scheduled
from jaxbio.environment.delays import realised_delays
from jaxbio.studies import specs
from jaxbio.studies.paper import command as reproduce

NAN = float("nan")
P = ((0.5, 0.5), (0.2, 0.8))
THETA = (0.2, 0.8)
SHORT = np.zeros((5, 2))  # a table of 5 rounds
BASE = jb.UCB1()


def world(
    mapping: Any = None, losses: Any = None, delays: Any = None, **options: Any
) -> jb.Environment:
    return jb.Environment(
        jb.StochasticMapping(P) if mapping is None else mapping,
        jb.BernoulliLosses(THETA) if losses is None else losses,
        jb.FixedDelay(3) if delays is None else delays,
        **options,
    )


def simulate(**changes: Any) -> Any:
    options = {"env": world(), "learner": BASE, "horizon": 20, "runs": 2, "progress": False}
    return jb.simulate(**(options | changes))


def rollout(env: Any = None, learner: Any = BASE, seed: Any = 0, **options: Any) -> Any:
    return jb.rollout(
        world() if env is None else env, learner, seed, options.pop("horizon", 20), **options
    )


def phases(growth: float) -> jb.Environment:
    return world(mapping=jb.AlternatingMapping([P, P], growth=growth))


class Silent:
    """Has no act and no learn."""

    def init(self, known: jb.Known) -> None:
        return None


Case = tuple[Callable[[], Any], Any, str]  # a call, the kind of error, its words

PROBLEMS: dict[str, Case] = {
    "row sum": (
        lambda: jb.StochasticMapping([[0.5, 0.5], [0.5, 0.5], [0.2, 0.7]]),
        ValueError,
        "P rows must sum to 1, but row 2 sums to 0.9 (mapping)",
    ),
    "row sum in a phase": (
        lambda: jb.AlternatingMapping([P, ((0.5, 0.5), (0.6, 0.6))]),
        ValueError,
        "P_phases rows must sum to 1, but row (1, 1) sums to 1.2 (mapping)",
    ),
    "negative probability": (
        lambda: jb.StochasticMapping([[1.0, 0.0], [1.5, -0.5]]),
        ValueError,
        "P must lie in [0, 1], but entry (1, 0) is 1.5",
    ),
    "P with one axis": (
        lambda: jb.StochasticMapping([0.5, 0.5]),
        ValueError,
        "P must have shape [K, S], but its shape is (2,)",
    ),
    "P_phases with two axes": (
        lambda: jb.AlternatingMapping(P),
        ValueError,
        "P_phases must have shape [E, K, S], but its shape is (2, 2)",
    ),
    "theta with two axes": (
        lambda: jb.BernoulliLosses([THETA]),
        ValueError,
        "theta must have shape [S], but its shape is (1, 2)",
    ),
    "states with one axis": (
        lambda: jb.TableMapping([0, 1]),
        ValueError,
        "states must have shape [T, K], but its shape is (2,)",
    ),
    "values with one axis": (
        lambda: jb.TableLosses([0.0, 1.0]),
        ValueError,
        "values must have shape [T, S], but its shape is (2,)",
    ),
    "delays with two axes": (
        lambda: jb.TableDelay([[1, 2]]),
        ValueError,
        "delays must have shape [T], but its shape is (1, 2)",
    ),
    "empty": (lambda: jb.TableDelay([]), ValueError, "delays must have shape [T], but it is empty"),
    "ragged": (
        lambda: jb.StochasticMapping([[0.5, 0.5], [1.0]]),
        TypeError,
        "P must be an array [K, S], but got [[0.5, 0.5], [1.0]]",
    ),
    "words": (lambda: jb.BernoulliLosses("high"), TypeError, "theta must be an array [S], but got"),
    "one action": (
        lambda: jb.StochasticMapping([[0.5, 0.5]]),
        ValueError,
        "P must have at least 2 actions (K >= 2), but its shape is (1, 2): add the actions",
    ),
    "one action in a table": (
        lambda: jb.TableMapping([[0], [1]]),
        ValueError,
        "states must have at least 2 actions (K >= 2), but its shape is (2, 1)",
    ),
    "theta above 1": (
        lambda: jb.BernoulliLosses([0.2, 1.2]),
        ValueError,
        "theta must lie in [0, 1], but entry 1 is 1.2",
    ),
    "theta below 0": (
        lambda: jb.ConstantLosses([-0.5, 0.2]),
        ValueError,
        "theta must lie in [0, 1], but entry 0 is -0.5",
    ),
    "values of events": (
        lambda: jb.EventLosses([0.2, 0.1], [0.5]),
        ValueError,
        "value must have shape (2,), but its shape is (1,)",
    ),
    "beta theta": (
        lambda: jb.BetaLosses([0.2, 2.0], 3),
        ValueError,
        "theta must lie in [0, 1], but entry 1 is 2",
    ),
    "concentration": (
        lambda: jb.BetaLosses(THETA, 0),
        ValueError,
        "concentration must be greater than 0, but got 0.0",
    ),
    "losses of a table": (
        lambda: jb.TableLosses([[0.0, 1.0], [0.0, 3.0]]),
        ValueError,
        "values must lie in [0, 1], but entry (1, 1) is 3",
    ),
    "coupling": (
        lambda: jb.BernoulliLosses(THETA, "both"),
        ValueError,
        "coupling must be one of 'shared', 'independent', but got 'both'",
    ),
    "groups": (
        lambda: jb.BlockBernoulliLosses(THETA, [0], 1),
        ValueError,
        "groups must have shape (2,), but its shape is (1,)",
    ),
    "NaN in P": (
        lambda: jb.StochasticMapping([[NAN, 0.5], [0.2, 0.8]]),
        ValueError,
        "P must not contain NaN or infinity, but entry (0, 0) is nan",
    ),
    "NaN in theta": (
        lambda: jb.BernoulliLosses([0.2, NAN]),
        ValueError,
        "theta must not contain NaN",
    ),
    "NaN in values": (
        lambda: jb.TableLosses([[0.2, NAN]]),
        ValueError,
        "values must not contain NaN or infinity, but entry (0, 1) is nan",
    ),
    "NaN in states": (
        lambda: jb.TableMapping([[0, NAN]]),
        ValueError,
        "states must not contain NaN",
    ),
    "NaN in delays": (lambda: jb.TableDelay([1, NAN]), ValueError, "delays must not contain NaN"),
    "NaN location": (
        lambda: jb.LaplaceDelay(NAN, 2),
        ValueError,
        "location must be in [-1.67772e+07, 1.67772e+07], but got nan",
    ),
    "negative state": (
        lambda: jb.TableMapping([[0, 1], [1, -1]]),
        ValueError,
        "states must be >= 0, but entry (1, 1) is -1",
    ),
    "half a state": (
        lambda: jb.TableMapping([[0, 1.5]]),
        ValueError,
        "states must be integers, but entry (0, 1) is 1.5",
    ),
    "state past the declared": (
        lambda: jb.TableMapping([[0, 4]], num_states=3),
        ValueError,
        "states must be below num_states=3, but got 4",
    ),
    "different S": (
        lambda: world(losses=jb.BernoulliLosses([0.1, 0.2, 0.3])),
        ValueError,
        "mapping and losses must have the same number of states, but the mapping has 2 and the "
        "losses have 3",
    ),
    "different S in a table": (
        lambda: world(mapping=jb.TableMapping([[0, 5]])),
        ValueError,
        "the mapping has 6 and the losses have 2",
    ),
    "mapping is no mapping": (
        lambda: world(mapping=P),
        TypeError,
        "mapping must be such as StochasticMapping(P), but got ((0.5, 0.5), (0.2, 0.8))",
    ),
    "losses are no losses": (
        lambda: world(losses=THETA),
        TypeError,
        "losses must be such as BernoulliLosses(theta), but got (0.2, 0.8)",
    ),
    "delays are no delays": (
        lambda: jb.make_environment("paper-stochastic", delays=50),
        TypeError,
        "delays must be such as FixedDelay(50), but got 50",
    ),
    "padded to fewer": (
        lambda: world().padded(1),
        ValueError,
        "slots must be in [2, 16777216], but got 1",
    ),
}

DELAYS: dict[str, Case] = {
    "negative": (
        lambda: jb.FixedDelay(-1),
        ValueError,
        "d (fixed delay) must be in [0, 1073741824], but got -1",
    ),
    "half": (lambda: jb.FixedDelay(1.5), ValueError, "d (fixed delay) must be an integer"),
    "NaN": (lambda: jb.FixedDelay(NAN), ValueError, "must be an integer, but got nan"),
    "infinite": (
        lambda: jb.FixedDelay(float("inf")),
        ValueError,
        "must be an integer, but got inf",
    ),
    "text": (lambda: jb.FixedDelay("5"), TypeError, "must be an integer, but got '5'"),
    "flag": (lambda: jb.FixedDelay(True), TypeError, "must be an integer, but got True"),
    "table negative": (
        lambda: jb.TableDelay([1, 0, -2]),
        ValueError,
        "delays must be >= 0, but entry 2 is -2",
    ),
    "table half": (
        lambda: jb.TableDelay([1, 1.5]),
        ValueError,
        "delays must be integers, but entry 1 is 1.5",
    ),
    "high < low": (
        lambda: jb.UniformDelay(5, 2),
        ValueError,
        "high must be at least low=5, but got 2",
    ),
    "low < 0": (lambda: jb.UniformDelay(-5, 2), ValueError, "low must be at least 0, but got -5"),
    "low half": (
        lambda: jb.UniformDelay(0.5, 2),
        ValueError,
        "low must be an integer, but got 0.5",
    ),
    "mean": (
        lambda: jb.GeometricDelay(-2),
        ValueError,
        "mean must be in [0, 1.67772e+07], but got -2.0",
    ),
    "mean NaN": (
        lambda: jb.GeometricDelay(NAN),
        ValueError,
        "mean must be in [0, 1.67772e+07], but got nan",
    ),
    "scale": (
        lambda: jb.LaplaceDelay(1, -2),
        ValueError,
        "scale must be in [0, 1.04858e+06], but got -2.0",
    ),
}

DELAYS |= {
    "no median": (
        lambda: jb.LogNormalDelay(0, 1),
        ValueError,
        "median must be in [1e-06, 1.67772e+07], but got 0.0",
    ),
    "negative spread": (
        lambda: jb.LogNormalDelay(50, -1),
        ValueError,
        "spread must be in [0, 100], but got -1.0",
    ),
    "no minimum": (
        lambda: jb.ParetoDelay(0, 1),
        ValueError,
        "minimum must be in [1e-06, 1.67772e+07], but got 0.0",
    ),
    "no tail": (
        lambda: jb.ParetoDelay(5, 0),
        ValueError,
        "tail must be in [0.01, 1000], but got 0.0",
    ),
    "negative dispersion": (
        lambda: jb.NegativeBinomialDelay(5, -2),
        ValueError,
        "dispersion must be in [0.001, 1e+06], but got -2.0",
    ),
    "a table that is too long": (
        lambda: jb.NegativeBinomialDelay(1e6, 0.01),
        ValueError,
        "mean and dispersion must make delays of at most 16,777,213 rounds, but with 1e+06 and "
        "0.01 one in 2e+10 is longer than ",
    ),
    "a traced mean": (
        lambda: jax.vmap(lambda m: jb.NegativeBinomialDelay(m, 2).last)(np.arange(2.0)),
        TypeError,
        "mean must have a value, but got a tracer: make the law outside of jit",
    ),
    "no distribution": (
        lambda: jb.EmpiricalDelay([0.5, 0.4]),
        ValueError,
        "probabilities and never must sum to 1, but they sum to 0.9",
    ),
    "no distribution in a state": (
        lambda: jb.EmpiricalDelay([[0.5, 0.5], [0.5, 0.25]], never=[0.0, 0.5]),
        ValueError,
        "probabilities and never must sum to 1, but they sum to 1.25 in row 1",
    ),
    "negative probability": (
        lambda: jb.EmpiricalDelay([1.5, -0.5]),
        ValueError,
        "probabilities must lie in [0, 1], but entry 0 is 1.5",
    ),
    "never of other states": (
        lambda: jb.EmpiricalDelay([[0.5, 0.5]], never=[0.1, 0.2]),
        ValueError,
        "never must be a number, or one per row of probabilities (1, 2), but its shape is (2,)",
    ),
    "values of other probabilities": (
        lambda: jb.EmpiricalDelay([0.5, 0.5], values=[1, 2, 3]),
        ValueError,
        "values must be 2, one per probability, but got 3",
    ),
    "values that do not increase": (
        lambda: jb.EmpiricalDelay([0.5, 0.5], values=[2, 2]),
        ValueError,
        "values must be increasing integers, but got [2, 2]",
    ),
    "values that are too large": (
        lambda: jb.EmpiricalDelay([0.5, 0.5], values=[2, 2**24]),
        ValueError,
        "values must be at most 16,777,213 rounds, but got 16,777,216",
    ),
    "a text of probabilities": (
        lambda: jb.EmpiricalDelay("geometric"),
        TypeError,
        "probabilities must be an array [d_max + 1], but got 'geometric'",
    ),
    "three axes": (
        lambda: jb.EmpiricalDelay(np.ones((1, 1, 1))),
        ValueError,
        "probabilities must have shape [S, d_max + 1], but its shape is (1, 1, 1)",
    ),
    "survival that rises": (
        lambda: jb.EmpiricalDelay.from_survival([0.5, 0.6]),
        ValueError,
        "survival must not rise, but it rises at entry (1,)",
    ),
    "a state without a delay": (
        lambda: jb.EmpiricalDelay.from_delays([3, 4], [0, 2]),
        ValueError,
        "states must hold every state, but there is no delay of state 1",
    ),
    "delays of other states": (
        lambda: world(delays=jb.EmpiricalDelay(np.ones((5, 1)))),
        ValueError,
        "delays must be those of 2 states, as the losses, but EmpiricalDelay has 5",
    ),
    "delays of other states in a window": (
        lambda: world(delays=jb.WindowedDelay(jb.EmpiricalDelay(np.ones((5, 1))), 9)),
        ValueError,
        "delays must be those of 2 states, as the losses, but WindowedDelay has 5",
    ),
    "a window over nothing": (
        lambda: jb.WindowedDelay(20, 30),
        TypeError,
        "law must be such as GeometricDelay(20), but got 20",
    ),
    "a negative window": (
        lambda: jb.WindowedDelay(jb.FixedDelay(3), -1),
        ValueError,
        "window must be in [0, 1073741824], but got -1",
    ),
    "an absent loss": (
        lambda: jb.WindowedDelay(jb.FixedDelay(3), 5, absent=2),
        ValueError,
        "absent must be in [0, 1], but got 2.0",
    ),
    "windows in a window": (
        lambda: jb.sweep_windows(
            world(delays=jb.WindowedDelay(jb.FixedDelay(3), 5)), {}, [3], horizon=9
        ),
        ValueError,
        "env must have the delays of conversions, but they have a window already",
    ),
    "windows that do not grow": (
        lambda: jb.sweep_windows(world(), {"a": jb.UCB1()}, [5, 5], horizon=9),
        ValueError,
        "windows must be increasing integers, but got [5, 5]",
    ),
    "windows and axes": (
        lambda: jb.sweep_windows(world(), {}, [5], horizon=9, axes={}),
        TypeError,
        "sweep_windows has no option 'axes'",
    ),
    "nothing came": (
        lambda: jb.fit_delays([], [3]),
        ValueError,
        "came must have shape [n], but it is empty: (0,)",
    ),
    "came before it was played": (
        lambda: jb.fit_delays([1, -2]),
        ValueError,
        "came must be >= 0, but entry 1 is -2",
    ),
    "half a round waited": (
        lambda: jb.fit_delays([1], [0.5]),
        ValueError,
        "waiting must be integers, but entry 0 is 0.5",
    ),
    "certain": (
        lambda: jb.fit_delays([1], level=1),
        ValueError,
        "level must be in (0, 1), but got 1.0",
    ),
    "fits of nothing": (
        lambda: jb.law_by_state([]),
        ValueError,
        "fits must have at least one DelayFit, but got []",
    ),
    "one sequence of delays that look": (
        lambda: realised_delays(jb.WindowedDelay(jb.FixedDelay(3), 5), 0, 9),
        ValueError,
        "the delays of WindowedDelay depend on what is played: there is no one sequence of them",
    ),
}

LEARNERS: dict[str, Case] = {
    "tuning": (
        lambda: jb.DAdaExp3(tuning="best"),
        ValueError,
        "tuning must be one of 'corrected', 'anytime', 'printed', but got 'best'",
    ),
    "Tsallis tuning": (
        lambda: jb.TsallisINF("printed"),
        ValueError,
        "tuning must be one of 'simple', 'skipping', but got 'printed'",
    ),
    "skipped": (
        lambda: jb.DAdaExp3(skipped="lost"),
        ValueError,
        "skipped must be one of 'kept', 'dropped', but got 'lost'",
    ),
    "scale": (
        lambda: jb.DAdaExp3(scale=0),
        ValueError,
        "scale must be greater than 0, but got 0.0",
    ),
    "scale NaN": (lambda: jb.TsallisINF(scale=NAN), ValueError, "scale must be greater than 0"),
    "rate": (lambda: jb.Exp3(rate=0), ValueError, "rate must be greater than 0, but got 0.0"),
    "total delay": (lambda: jb.Exp3(total_delay=-1), ValueError, "total_delay must be at least 0"),
    "exploration": (lambda: jb.UCB1(-1), ValueError, "exploration must be at least 0, but got -1"),
    "window": (
        lambda: jb.NSDUCRL2(window=0),
        ValueError,
        "window must be in [1, 1073741824], but got 0",
    ),
    "elimination scale": (
        lambda: jb.SuccessiveElimination(-0.5),
        ValueError,
        "scale must be at least 0, but got -0.5",
    ),
    "copies": (lambda: jb.BOLD(BASE, 0), ValueError, "copies must be in [1, 1048576], but got 0"),
    "horizon of copies": (
        lambda: jb.BOLD(BASE, horizon=0),
        ValueError,
        "horizon must be in [1, 1073741824], but got 0",
    ),
    "period": (
        lambda: jb.Restarting(BASE, 0),
        ValueError,
        "period must be in [1, 1073741824], but got 0",
    ),
    "period NaN": (lambda: jb.Restarting(BASE, NAN), ValueError, "period must be an integer"),
    "known theta": (
        lambda: jb.KnownLosses(BASE, [0.2, 1.5]),
        ValueError,
        "theta must lie in [0, 1], but entry 1 is 1.5",
    ),
    "known theta with two axes": (
        lambda: jb.KnownLosses(BASE, [THETA]),
        ValueError,
        "theta must have shape [S], but its shape is (1, 2)",
    ),
    "base of QPM-D": (lambda: jb.QPMD(Silent()), TypeError, "base must be a learner"),
    "base of BOLD": (lambda: jb.BOLD(jb.UCB1), TypeError, "got the class UCB1: give an instance"),
    "base of Restarting": (lambda: jb.Restarting(3, 9), TypeError, "base must be a learner"),
    "base of KnownLosses": (lambda: jb.KnownLosses(3, THETA), TypeError, "base must be a learner"),
    "proposals": (lambda: jb.ThompsonSampling(0), ValueError, "proposals must be in [1, 64]"),
    "sampler": (
        lambda: jb.StateThompson("best"),
        ValueError,
        "sampler must be one of 'moments', 'exact', but got 'best'",
    ),
    "discount": (lambda: jb.StateThompson(discount=0), ValueError, "discount must be in (0, 1]"),
    "discount of losses": (lambda: jb.UCB1(discount=0), ValueError, "discount must be in (0, 1]"),
    "discount of flips": (
        lambda: jb.ThompsonSampling(discount=1.01),
        ValueError,
        "discount must be in (0, 1], but got 1.01",
    ),
    "discount of the losses of states": (
        lambda: jb.StateThompson(loss_discount=2),
        ValueError,
        "loss_discount must be in (0, 1], but got 2",
    ),
    "a discount that float32 cannot hold": (
        lambda: jb.UCB1(discount=1e-46),
        ValueError,
        "discount must be a number that float32 can hold",
    ),
    "discount of W": (
        lambda: jb.HindsightExp3(discount=1.5),
        ValueError,
        "discount must be in (0, 1]",
    ),
    "prior": (lambda: jb.HindsightTsallis(prior=-1), ValueError, "prior must be in [0, 1]"),
    "estimator of prices": (
        lambda: jb.HindsightExp3(estimator="ucb"),
        ValueError,
        "estimator must be one of 'lcb'",
    ),
    "estimator": (
        lambda: jb.MetaBIO(BASE, estimator="ucb"),
        ValueError,
        "estimator must be one of 'lcb', 'mean', but got 'ucb'",
    ),
    "threshold": (
        lambda: jb.MetaBIO(BASE, threshold="fixed"),
        ValueError,
        "threshold must be one of 'outstanding', 'delay', but got 'fixed'",
    ),
    "ordering": (
        lambda: jb.MetaBIO(BASE, ordering="random"),
        ValueError,
        "ordering must be one of 'together', 'sequential', but got 'random'",
    ),
    "radius": (
        lambda: jb.MetaBIO(BASE, radius="none"),
        ValueError,
        "radius must be one of 'horizon', 'anytime', but got 'none'",
    ),
    "radius scale": (
        lambda: jb.MetaBIO(BASE, radius_scale=-1),
        ValueError,
        "radius_scale must be at least 0, but got -1.0",
    ),
    "delay": (
        lambda: jb.MetaBIO(BASE, threshold="delay", delay=-4),
        ValueError,
        "delay must be in [0, 1073741824], but got -4",
    ),
    "rule": (
        lambda: jb.MetaAdaBIO(BASE, rule="never"),
        ValueError,
        "rule must be one of 'theory', 'practical', 'footnote', 'expected', but got 'never'",
    ),
    "at_switch": (
        lambda: jb.MetaAdaBIO(BASE, at_switch="new"),
        ValueError,
        "at_switch must be one of 'learner', 'fresh', 'all', but got 'new'",
    ),
    "doubling": (
        lambda: jb.MetaAdaBIO(BASE, doubling=1),
        ValueError,
        "doubling must be in [2, 268435456], but got 1",
    ),
    "after without fresh": (
        lambda: jb.MetaAdaBIO(BASE, after=jb.UCB1()),
        ValueError,
        "after needs at_switch='fresh', but got 'learner'",
    ),
    "after of another class": (
        lambda: jb.MetaAdaBIO(BASE, at_switch="fresh", after=jb.TsallisINF()),
        ValueError,
        "after must have the structure of base (same class and choices), but got TsallisINF",
    ),
    "after of another tuning": (
        lambda: jb.MetaAdaBIO(
            jb.DAdaExp3(), at_switch="fresh", after=jb.DAdaExp3(tuning="printed")
        ),
        ValueError,
        "after must have the structure of base",
    ),
    "base is a name": (
        lambda: jb.MetaBIO("ucb1"),
        TypeError,
        "base must be a learner with init, act and learn, but 'ucb1' lacks init, act, learn",
    ),
    "base lacks methods": (
        lambda: jb.MetaAdaBIO(Silent()),
        TypeError,
        "lacks act, learn",
    ),
    "learner name": (
        lambda: jb.make_learner("exp4"),
        ValueError,
        "learner name must be one of 'dada-exp3', ",
    ),
    "learner option": (
        lambda: jb.make_learner("metabio", rule="theory"),
        TypeError,
        "'metabio' has no option 'rule'; it has delta, tuning, skipping, ",
    ),
    "learner value": (
        lambda: jb.make_learner("metaadabio", delta=2),
        ValueError,
        "delta must be in (0, 1), but got 2.0",
    ),
}

GAMES: dict[str, Case] = {
    "fewer copies than rounds wait": (
        lambda: simulate(learner=jb.MetaBIO(jb.BOLD(BASE, copies=3))),
        ValueError,
        "copies must be at least 4, one more than the delay, but got 3",
    ),
    "known losses of other states": (
        lambda: simulate(learner=jb.KnownLosses(BASE, [0.1, 0.2, 0.3])),
        ValueError,
        "theta must have shape (2,), one mean loss per state of the environment, but its shape "
        "is (3,)",
    ),
    "what the base of a contestant needs": (
        lambda: simulate(
            env=world(delays=jb.UniformDelay(0, 3)),
            learner=jb.QPMD(jb.BOLD(jb.Restarting(jb.MetaBIO(BASE, threshold="delay"), 9))),
        ),
        ValueError,
        "threshold='delay' needs a fixed delay",
    ),
    "environment name": (
        lambda: jb.make_environment("paper"),
        ValueError,
        "environment name must be one of 'paper-stochastic', ",
    ),
    "environment option": (
        lambda: jb.make_environment("paper-utility", state=4),
        TypeError,
        "'paper-utility' has no option 'state'; it has delays, actions, states",
    ),
    "too few states": (
        lambda: jb.make_environment("paper-utility", states=1),
        ValueError,
        "states must be at least 2, but got 1",
    ),
    "best of two": (
        lambda: jb.make_environment("hard-states", best=2),
        ValueError,
        "best must be in [0, 1], but got 2",
    ),
    "no delay to exploit": (
        lambda: jb.make_environment("hard-states", delay=0),
        ValueError,
        "delay must be at least 1, but got 0",
    ),
    "delay as long as the game": (
        lambda: jb.make_environment("hard-delay", horizon=100, delay=100),
        ValueError,
        "delay must be in [0, 99], but got 100",
    ),
    "growth": (
        lambda: jb.AlternatingMapping([P, P], growth=0.5),
        ValueError,
        "growth must be at least 1, but got 0.5",
    ),
    "growth NaN": (
        lambda: jb.AlternatingMapping([P, P], growth=NAN),
        ValueError,
        "growth must be at least 1, but got nan",
    ),
    "growth of the logarithm": (
        lambda: jb.AlternatingMapping([P, P], growth=1, reading="log"),
        ValueError,
        "growth must be greater than 1 for reading='log', but got 1.0",
    ),
    "reading": (
        lambda: jb.AlternatingMapping([P, P], reading="floor"),
        ValueError,
        "reading must be one of 'ceil', 'log', but got 'floor'",
    ),
    "start": (
        lambda: jb.AlternatingMapping([P, P], start=2),
        ValueError,
        "start must be in [0, 1], but got 2",
    ),
    "first": (
        lambda: jb.AlternatingMapping([P, P], first=0),
        ValueError,
        "first must be in [1, 1073741824], but got 0",
    ),
    "too many phases": (
        lambda: simulate(env=phases(1), horizon=10_000),
        ValueError,
        "growth=1 and first=1 make more than 4096 phases within the horizon 10000: raise growth",
    ),
    "too many phases in one run": (
        lambda: rollout(phases(1), horizon=10_000),
        ValueError,
        "raise growth or first",
    ),
    "too few states in a table": (
        lambda: simulate(env=world(mapping=jb.TableMapping(SHORT))),
        ValueError,
        "states has 5 rows, but the horizon is 20: give one row per round or play fewer rounds",
    ),
    "too few losses in a table": (
        lambda: rollout(world(losses=jb.TableLosses(SHORT))),
        ValueError,
        "values has 5 rows, but the horizon is 20",
    ),
    "too few delays in a table": (
        lambda: jb.trajectory(world(delays=jb.TableDelay(SHORT[:, 0])), BASE, 0, 20),
        ValueError,
        "delays has 5 rows, but the horizon is 20",
    ),
    "instance for a shorter game": (
        lambda: simulate(env=jb.make_environment("hard-states", horizon=10)),
        ValueError,
        "states has 10 rows, but the horizon is 20",
    ),
    "random delays, fixed threshold": (
        lambda: simulate(
            env=world(delays=jb.UniformDelay(0, 5)), learner=jb.MetaBIO(BASE, threshold="delay")
        ),
        ValueError,
        "threshold='delay' needs a fixed delay, but the environment has UniformDelay: "
        "give delay=... or use threshold='outstanding'",
    ),
    "the same, wrapped, in one run": (
        lambda: rollout(
            world(delays=jb.GeometricDelay(5)),
            jb.MetaAdaBIO(jb.MetaBIO(BASE, threshold="delay")),
        ),
        ValueError,
        "threshold='delay' needs a fixed delay, but the environment has GeometricDelay",
    ),
    "no environment": (
        lambda: simulate(env=P),
        TypeError,
        "env must be an Environment, but got ((0.5, 0.5), (0.2, 0.8))",
    ),
    "no learner": (
        lambda: simulate(learner="ucb1"),
        TypeError,
        "learner must be a learner with init, act and learn, but 'ucb1' lacks init, act, learn",
    ),
    "half a learner": (lambda: rollout(learner=Silent()), TypeError, "lacks act, learn"),
    "no runs": (lambda: simulate(runs=0), ValueError, "runs must be at least 1, but got 0"),
    "half a run": (lambda: simulate(runs=1.5), ValueError, "runs must be an integer, but got 1.5"),
    "negative seed": (
        lambda: simulate(seed=-1),
        ValueError,
        "seed must be in [0, ",
    ),
    "half a seed": (lambda: simulate(seed=0.5), ValueError, "seed must be an integer, but got 0.5"),
    "a raw key": (lambda: simulate(seed=jnp.zeros(2)), TypeError, "seed must be an integer"),
    "no width": (lambda: simulate(width=0), ValueError, "width must be at least 1, but got 0"),
    "no workers": (lambda: simulate(workers=0), ValueError, "workers must be at least 1, but got"),
    "late round": (
        lambda: simulate(rounds=[5, 25]),
        ValueError,
        "rounds must be at most the horizon 20, but got 25",
    ),
    "late round of one run": (
        lambda: rollout(rounds=[25]),
        ValueError,
        "rounds must be at most the horizon 20, but got 25",
    ),
    "round 0": (lambda: simulate(rounds=[0, 5]), ValueError, "rounds must be >= 1, but entry 0"),
    "half a round": (lambda: simulate(rounds=[1.5]), ValueError, "rounds must be integers, but"),
    "no rounds": (lambda: simulate(rounds=0), ValueError, "rounds must be at least 1, but got 0"),
    "empty rounds": (lambda: simulate(rounds=[]), ValueError, "rounds must have shape [points], "),
    "rounds in words": (lambda: simulate(rounds="all"), TypeError, "rounds must be an integer, "),
    "traced delays": (
        lambda: jax.vmap(lambda d: rollout(world(delays=jb.FixedDelay(d))))(jnp.arange(2)),
        ValueError,
        "pass ring_depth=... and lanes=... to rollout",
    ),
}

EVERY = {
    f"{group}: {name}": case
    for group, cases in (("problem", PROBLEMS), ("delay", DELAYS), ("learner", LEARNERS))
    for name, case in cases.items()
} | {f"game: {name}": case for name, case in GAMES.items()}


@pytest.mark.parametrize("name", EVERY)
def test_refused_in_words(name: str) -> None:
    call, kind, message = EVERY[name]
    with pytest.raises(kind, match=re.escape(message)):
        call()


@pytest.mark.parametrize("value", [0, 1, -0.1, 1.5, NAN, float("inf")])
@pytest.mark.parametrize(
    "build",
    [
        jb.DAdaExp3,
        jb.NSDUCRL2,
        lambda delta: jb.MetaBIO(BASE, delta),
        lambda delta: jb.MetaAdaBIO(BASE, delta),
        lambda delta: jb.make_learner("dada-exp3", delta=delta),
        lambda delta: jb.make_learner("metabio", delta=delta),
        lambda delta: jb.make_learner("metaadabio", delta=delta),
    ],
)
def test_confidence_outside_the_open_interval(build: Any, value: float) -> None:
    message = rf"delta must be in \(0, 1\), but got {re.escape(repr(float(value)))}"
    with pytest.raises(ValueError, match=message):
        build(delta=value)


@pytest.mark.parametrize("value", ["0.1", None, [0.1], True, 1j])
def test_confidence_that_is_no_number(value: Any) -> None:
    with pytest.raises(TypeError, match=r"delta must be a number, but got"):
        jb.DAdaExp3(delta=value)


@pytest.mark.parametrize("play", [simulate, rollout])
@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [
        (0, ValueError, r"horizon must be in \[1, \d+\], but got 0"),
        (-3, ValueError, r"horizon must be in \[1, \d+\], but got -3"),
        (2**31, ValueError, r"horizon must be in \[1, \d+\], but got 2147483648"),
        (1.5, ValueError, r"horizon must be an integer, but got 1.5"),
        (NAN, ValueError, r"horizon must be an integer, but got nan"),
        ("20", TypeError, r"horizon must be an integer, but got '20'"),
        (None, TypeError, r"horizon must be an integer, but got None"),
    ],
)
def test_horizon(play: Any, value: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        play(horizon=value)


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(ValueError, match="learner name") as learner:
        jb.make_learner("exp4")
    with pytest.raises(ValueError, match="environment name") as environment:
        jb.make_environment("exp4")
    assert all(repr(name) in str(learner.value) for name in jb.learner_names())
    assert all(repr(name) in str(environment.value) for name in jb.environment_names())


@jb.pytree
class Odd:
    """A learner that breaks the protocol where `fault` says."""

    fault: str = jb.static(default="structure")

    def init(self, known: jb.Known) -> jax.Array:
        return jnp.zeros(known.num_actions)

    def act(self, state: Any, t: Any, u: Any) -> Any:
        ticket = state if self.fault == "shape" else u
        action = {"Python number": 0, "range": jnp.int32(2)}.get(self.fault, jnp.int32(0))
        return action, ticket

    def learn(self, state: Any, t: Any, play: jb.Play, arrivals: jb.Arrivals) -> Any:
        ticket = {"structure": (play.ticket, t), "type": t}.get(self.fault, play.ticket)
        return state, ticket


class Plain:
    """A learner that is not a pytree."""

    init, act, learn = Odd.init, Odd.act, Odd.learn


@pytest.mark.parametrize("learner", [Odd(), jb.MetaBIO(Odd())])
@pytest.mark.parametrize("play", [simulate, rollout])
def test_learn_returns_another_ticket(play: Any, learner: Any) -> None:
    with pytest.raises(TypeError, match="must return a ticket like the one act handed out"):
        play(learner=learner)


def test_good_values_of_other_types_pass() -> None:
    """NumPy and JAX scalars, whole floats, arrays, keys and a numpy horizon are all fine."""
    jb.DAdaExp3(delta=np.float32(0.1))
    jb.MetaBIO(BASE, delta=jnp.float32(0.5), threshold="delay", delay=np.int64(4))
    jb.StochasticMapping(jnp.asarray(P))
    jb.UniformDelay(np.int32(2), jnp.int32(2))
    assert jb.FixedDelay(4.0).d == 4


def test_traced_values_pass_unread() -> None:
    """Inside a transformation there is no value to check."""
    jax.eval_shape(lambda d: jb.MetaBIO(jb.DAdaExp3(d), d), jnp.float32(2.0))
    jax.eval_shape(lambda d: jb.FixedDelay(d), jnp.int32(-1))


# --- games whose parts do not fit together

RANDOM = world(delays=jb.UniformDelay(0, 5))
STRUCTURE: dict[str, Case] = {
    "rollout without an environment": (lambda: rollout(P), TypeError, "env must be an Environment"),
    "world without an environment": (
        lambda: jb.sample_world(P, 0, 0, 20),  # type: ignore[arg-type]
        TypeError,
        "env must be an Environment",
    ),
    "world of no rounds": (
        lambda: jb.sample_world(world(), 0, 0, 0),
        ValueError,
        "horizon must be in [1, ",
    ),
    "world longer than its tables": (
        lambda: jb.sample_world(world(mapping=jb.TableMapping(SHORT)), 0, 0, 20),
        ValueError,
        "states has 5 rows, but the horizon is 20",
    ),
    "negative seed of a world": (
        lambda: jb.sample_world(world(), -1, 0, 20),
        ValueError,
        "seed must be in",
    ),
    "negative seed of one run": (lambda: rollout(seed=-1), ValueError, "seed must be in"),
    "half a seed of one run": (lambda: rollout(seed=0.5), ValueError, "seed must be an integer"),
    "negative run": (
        lambda: rollout(run=-1),
        ValueError,
        "run must be in [0, 2147483647], but got -1",
    ),
    "a class, not an instance": (lambda: simulate(learner=jb.UCB1), TypeError, "UCB1()"),
    "a class as a base": (lambda: jb.MetaBIO(jb.UCB1), TypeError, "base must be a learner"),
    "a learner that is no pytree": (lambda: simulate(learner=Plain()), TypeError, "pytree"),
    "a delay past int32": (lambda: jb.FixedDelay(2**40), ValueError, "d (fixed delay) must be"),
    "more real states than slots": (
        lambda: world(real_states=9),
        ValueError,
        "real_states must be in [1, 2], but got 9",
    ),
    "an option that the name fixes": (
        lambda: jb.make_learner("metabio-skipping", skipping=False),
        TypeError,
        "'metabio-skipping' has no option 'skipping'",
    ),
    "ring shorter than the delays": (
        lambda: rollout(RANDOM, ring_depth=4, lanes=8),
        ValueError,
        "ring_depth must be",
    ),
    "negative lanes": (
        lambda: rollout(RANDOM, ring_depth=64, lanes=-1),
        ValueError,
        "lanes must be",
    ),
    "ticket with an axis": (
        lambda: simulate(learner=Odd("shape")),
        TypeError,
        "the ticket of Odd must be made of scalars",
    ),
    "ticket of another type": (
        lambda: simulate(learner=Odd("type")),
        TypeError,
        "learn of Odd must return a ticket like the one act handed out",
    ),
    "action out of range": (
        lambda: simulate(learner=Odd("range")),
        (ValueError, RuntimeError),
        "action",
    ),
}


@pytest.mark.parametrize("name", STRUCTURE)
def test_structure_is_refused_in_words(name: str) -> None:
    call, kind, message = STRUCTURE[name]
    with pytest.raises(kind, match=re.escape(message)):
        call()


# --- numbers of other kinds, and what only looks like a number

HUGE = 10**400
NUMBERS: dict[str, Case] = {
    "400 digits": (lambda: jb.FixedDelay(HUGE), ValueError, "d (fixed delay) must be in [0, "),
    "5000 digits": (
        lambda: jb.FixedDelay(10**5000),
        ValueError,
        "d (fixed delay) must be in [0, 1073741824], but got <int>",
    ),
    "400 digits, less than 0": (lambda: jb.UCB1(-HUGE), ValueError, "exploration must be at least"),
    "400 digits of a confidence": (
        lambda: jb.DAdaExp3(HUGE),
        ValueError,
        "delta must be in (0, 1)",
    ),
    "400 digits of a fraction": (
        lambda: jb.GeometricDelay(Fraction(HUGE, 3)),
        ValueError,
        "mean must be in [0, ",
    ),
    "400 digits in a table": (lambda: jb.TableDelay([HUGE]), TypeError, "delays must be an array"),
    "400 digits of theory": (
        lambda: jb.theory.lower_bound(horizon=HUGE, num_actions=2, num_states=2, delay=1),
        ValueError,
        "horizon must be at most 9007199254740992, got 1000",
    ),
    "400 digits of rounds": (
        lambda: jb.theory.total_delay(3, horizon=HUGE),
        ValueError,
        "horizon must be at most",
    ),
    "a window of 2^31": (lambda: jb.NSDUCRL2(window=2**31), ValueError, "window must be in [1, "),
    "a number of runs of 2^63": (
        lambda: jb.tune(world(), jb.UCB1, {"exploration": 2}, horizon=20, runs=2**63),
        ValueError,
        "runs must be in [1, 2147483647], but got 9223372036854775808",
    ),
    "a text in an array": (lambda: jb.FixedDelay(np.array("50")), TypeError, "must be an integer"),
    "a text in an array of theory": (
        lambda: jb.theory.d_max(np.array("50"), horizon=99),
        ValueError,
        "delays must be non-negative integers, got dtype <U2",
    ),
    "a truth value in an array": (
        lambda: jb.UCB1(np.array(True)),
        TypeError,
        "exploration must be",
    ),
    "a complex number in an array": (lambda: jb.UCB1(np.array(1j)), TypeError, "exploration must"),
    "a span of time": (lambda: jb.FixedDelay(np.timedelta64(5, "D")), TypeError, "d (fixed delay)"),
    "dates": (
        lambda: jb.TableDelay(np.array(["2023-07-15"], "M8[D]")),
        TypeError,
        "delays must be an array [T]",
    ),
    "complex numbers": (
        lambda: jb.BernoulliLosses(np.array([0.1 + 0j])),
        TypeError,
        "theta must be an array [S]",
    ),
    "an array for a name": (
        lambda: jb.DAdaExp3(tuning=np.array(["corrected", "printed"])),  # type: ignore
        ValueError,
        "tuning must be one of 'corrected', ",
    ),
    "an array for a name that decides": (
        lambda: jb.make_learner("metaadabio", at_switch=np.array(["fresh", "all"])),
        ValueError,
        "at_switch must be one of ",
    ),
    "no number of a list": (lambda: jb.UCB1([[1], [2, 3]]), TypeError, "exploration must be a"),
    "a flag that is none": (
        lambda: jb.theory.dada_bound(
            horizon=9,
            num_actions=2,
            delays=1,
            delta=0.1,
            split=np.ones(2),  # type: ignore
        ),
        ValueError,
        "split must be True or False",
    ),
    "a rate that would be 0": (
        lambda: jb.theory.exp3_bound(horizon=9, num_actions=2, delays=1, stability=1e308),
        ValueError,
        "stability must lie in (0, 1e+100)",
    ),
    "no environment for a ring": (
        lambda: jb.ring_sizes(None, 20),  # type: ignore
        TypeError,
        "env must be an Environment",
    ),
    "a ring in words": (lambda: rollout(ring_depth="a"), TypeError, "ring_depth must be an"),
    "a schedule of words": (
        lambda: jb.DAdaExp3(scale=lambda t: "fast"),
        TypeError,
        "scale must be a positive number, or a function that makes one of the round, but",
    ),
    "a schedule of two arguments": (
        lambda: jb.TsallisINF(scale=lambda t, rate: rate),
        TypeError,
        "scale must be a positive number, or a function",
    ),
    "a schedule of several numbers": (
        lambda: jb.TsallisINF(scale=lambda t: jnp.ones(3)),
        TypeError,
        "scale must be a positive number, or a function",
    ),
    "a class for a part": (
        lambda: world(delays=jb.FixedDelay),
        TypeError,
        "delays must be such as FixedDelay(50), but got <class",
    ),
    "an environment for a mapping": (lambda: world(world()), TypeError, "mapping must be such as"),
    "more states than have words": (
        lambda: world().padded(2**31 - 1),
        ValueError,
        "slots must be in [2, 16777216]",
    ),
    "a folder of no name": (
        lambda: jb.play_beyond(horizon=20, changes=[1], store=3),  # type: ignore
        TypeError,
        "store must be the path of a folder, but got 3",
    ),
    "a folder that no disk has": (
        lambda: jb.measure_rates(store="a\0b"),
        ValueError,
        "store must be the path of a folder, but got 'a\\x00b'",
    ),
    "a quantile of 400 digits": (
        lambda: jb.plan_sweep(world(), {"a": jb.UCB1()}, {}, horizon=9, quantiles=[10**400]),  # type: ignore
        TypeError,
        "quantiles must be numbers in [0, 1]",
    ),
    "a client of 5,000 digits": (
        lambda: jb.plan_sweep(world(), {"a": jb.UCB1()}, {}, horizon=9, client=10**5000),
        TypeError,
        "client must be a distributed.Client, but got <int>",
    ),
    "a function without arguments of a name": (
        lambda: jb.plan_sweep(int, {"a": jb.UCB1()}, {}, horizon=9),
        TypeError,
        "environment must have arguments with names",
    ),
    "a guarantee that is a number": (
        lambda: jb.check_guarantees(guarantees=[1]),  # type: ignore
        TypeError,
        "guarantees must be Guarantees, but got 1",
    ),
    "no lemmas": (
        lambda: jb.check_guarantees(lemmas=None),  # type: ignore
        TypeError,
        "lemmas must be a list of Lemmas",
    ),
    "a tree of no class": (
        lambda: jb.pytree(5),  # type: ignore
        TypeError,
        "cls must be a class",
    ),
    "one number for a list": (
        lambda: jb.measure_rates(delays=np.array(3)),  # type: ignore
        TypeError,
        "delays must be a list of integers, but got array(3)",
    ),
    "a point that is none": (
        lambda: jb.compare({"a": [1, 2], "b": [2, 3]}, at=3),  # type: ignore
        TypeError,
        "at must map axes to values, but got 3",
    ),
    "curves of nothing": (
        lambda: plot.regret_curves(None),  # type: ignore
        TypeError,
        "results must map names to Results, but got None",
    ),
    "no curves": (lambda: plot.regret_curves({}), ValueError, "results must have at least one"),
    "a title that is none": (
        lambda: plot.regret_curves(CURVES, title=3),  # type: ignore
        TypeError,
        "title must be a text, but got 3",
    ),
    "a look that is none": (
        lambda: plot.regret_curves(CURVES, look="dark"),  # type: ignore
        TypeError,
        "look must be a Look, but got 'dark'",
    ),
    "a confidence that single precision takes for 0": (
        lambda: jb.MetaBIO(BASE, delta=1e-320),
        ValueError,
        "delta must be at least 1e-20, which single precision can divide by, but got 1e-320",
    ),
    "a scale that single precision cannot hold": (
        lambda: jb.Exp3(scale=1e39),
        ValueError,
        "scale must be a number that float32 can hold, from 1.2e-38 to 3.4e+38, but got 1e+39",
    ),
    "a scale that single precision takes for 0": (
        lambda: jb.UCB1(1e-46),
        ValueError,
        "exploration must be a number that float32 can hold",
    ),
    "quantiles that are a text": (
        lambda: jb.sweep(world(), {"a": BASE}, {}, horizon=20, keep="moments", quantiles="0.1"),  # type: ignore
        TypeError,
        "quantiles must be",
    ),
    "a progress that is a text": (
        lambda: simulate(progress="abc"),
        TypeError,
        "progress must be True or False, but got 'abc'",
    ),
    "a choice that is equal to everything": (
        lambda: jb.DAdaExp3(tuning=mock.ANY),
        ValueError,
        "tuning must be one of 'corrected', 'anytime', 'printed', but got <ANY>",
    ),
    "delays that are bytes": (
        lambda: jb.TableDelay(bytearray(b"5")),
        TypeError,
        "delays must be an array",
    ),
    "groups that are one group when cut off": (
        lambda: jb.BlockBernoulliLosses(THETA, [2**31, 2**32], 5),
        ValueError,
        "groups must be <= 16777215, but entry 0 is 2.14748e+09",
    ),
    "a ring with more places than 32 bits count": (
        lambda: jb.plan_sweep(
            world(delays=jb.UniformDelay(0, 10**9)), {"a": BASE}, {}, horizon=10**9
        ),
        MemoryError,
        "a ring for delays of up to 1,073,741,824 rounds has 8,589,934,593 places, but at most",
    ),
    "a value of an axis with more digits than are printed": (
        lambda: jb.plan_sweep(world(), {"a": BASE}, {"x": [10**5000, "a"]}, horizon=20),
        ValueError,
        "axis 'x' must have values of one kind",
    ),
    "no point of a sweep": (
        lambda: jb.compare(NO_POINTS),
        ValueError,
        "results must have a point to compare learners at, but the sweep has none",
    ),
    "a missing entry of a table": (
        lambda: jb.BernoulliLosses(np.ma.array(THETA, mask=[False, True])),
        TypeError,
        "theta must be an array [S], but got masked_array",
    ),
    "a missing number": (
        lambda: jb.sample_world(world(), 0, 0, np.ma.array(5, mask=True)),  # type: ignore
        TypeError,
        "horizon must be an integer, but got masked_array",
    ),
}
NO_POINTS = xr.Dataset(
    {"final_regret": (("learner", "delay", "run"), np.zeros((2, 0, 2)))},
    {"learner": ["a", "b"], "delay": []},
)
FLAT = np.zeros((1, 2))
CURVES = {"a": jb.Result(np.array([1, 2]), FLAT, FLAT, {}, lambda: FLAT)}


@pytest.mark.parametrize("name", NUMBERS)
def test_other_kinds_are_refused_in_words(name: str) -> None:
    call, kind, message = NUMBERS[name]
    with pytest.raises(kind, match=re.escape(message)):
        call()


@pytest.mark.parametrize("missing", ["check", "longest", "constant", "written_down"])
def test_a_law_that_lacks_something_is_told_what(missing: str) -> None:
    members = {"delay": lambda self, key, t: t, "longest": lambda self: 3}
    members |= {"check": lambda self, horizon: None, "constant": False, "written_down": False}
    law = jb.pytree(type("Law", (), {n: m for n, m in members.items() if n != missing}))
    with pytest.raises(TypeError, match=f"but Law lacks {missing} \\(see jaxbio.core.Delays"):
        world(delays=law())


def test_a_law_that_looks_is_told_what_it_lacks() -> None:
    members = {"looks": True, "longest": lambda self: 3, "check": lambda self, horizon: None}
    lacking = jb.pytree(type("Law", (), members | {"constant": False, "written_down": False}))
    with pytest.raises(TypeError, match=r"but Law lacks reveal \(see jaxbio.core.Delays"):
        world(delays=lacking())
    members |= {"reveal": lambda self, key, t, state, loss: loss, "written_down": False}
    with pytest.raises(ValueError, match="can be neither constant nor written down, but Law says"):
        world(delays=jb.pytree(type("Law", (), members | {"constant": True}))())
    one = jb.pytree(type("Law", (), members | {"constant": False}))
    with pytest.raises(TypeError, match="reveal of Law must return the loss that the learner is"):
        jb.rollout(world(delays=one()), jb.UCB1(), 0, 9)


def test_a_part_that_is_no_pytree_is_told_so() -> None:
    class Law(type(jb.FixedDelay(3))):
        pass

    with pytest.raises(TypeError, match="delays must be a pytree, but Law is not"):
        world(delays=Law(3))


def test_whole_numbers_of_all_kinds_pass() -> None:
    for three in (3, 3.0, Fraction(3), np.float16(3), np.array(3), np.array(3.0), jnp.int32(3)):
        delay = jb.FixedDelay(three).d
        assert (delay, type(delay)) == (3, int)
    assert jb.UCB1(jnp.bfloat16(0.5)).exploration == 0.5
    assert isinstance(jb.DAdaExp3(scale=optax.constant_schedule(0.5)).scale, Scheduled)


# --- specs on a command line


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: specs.learner("metabio:delta=0.1,delta=0.2"),
            "option 'delta' is set twice, to 0.1",
        ),
        (lambda: specs.learner("metabio:delta=2"), "learner 'metabio:delta=2': delta must be in"),
        (lambda: specs.learner("metabio:name=2"), "'name' is no option that can be set"),
        (lambda: specs.learner("metabio:=2"), "an option must be name=value, but got '=2'"),
        (lambda: specs.settings([("states", "4"), ("states", "5")]), "'states' is set twice, to 4"),
        (lambda: specs.delays("laplace:a,1"), "delay 'laplace:a,1': location must be a number"),
        (lambda: specs.environment("paper-utility", {"delays": 3}, "50"), "are one thing"),
        (lambda: specs.function("..:x"), "family '..:x' cannot be imported"),
        (lambda: specs.function("nowhere:x"), "family 'nowhere:x' cannot be imported: No module"),
        (
            lambda: specs.function("math:pi"),
            "family 'math:pi' must be a function (actions, states, ",
        ),
        (lambda: specs.function("math:nothing"), "module 'math' has no 'nothing'"),
    ],
)
def test_specs_are_refused_with_what_was_written(make: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        make()


def test_a_module_of_the_user_that_cannot_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "halfway.py").write_text("def family(:\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="family 'halfway:family' cannot be imported: SyntaxError"):
        specs.function("halfway:family")


# --- how commands end


def ended(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[Any, str]:
    """Exit code, and what was said on the standard error stream."""
    try:
        code = cli.main(words)
    except SystemExit as end:
        code = end.code
    return code, capsys.readouterr().err


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cli, "_keep_programs", lambda: None)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("command")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run nowhere ucb1", "jaxbio run: argument ENVIRONMENT: invalid choice: 'nowhere'"),
        (
            "run paper-stochastic ucb1 --runs a",
            "jaxbio run: argument --runs: must be a whole number",
        ),
        ("theory --actions 3", "jaxbio theory: the following arguments are required: --states"),
        ("nothing", "jaxbio: argument command: invalid choice"),
        (
            "run paper-stochastic ucb1 --figure a\0.png",
            "argument --figure: the name must be a path",
        ),
        ("phase --folder a\0b", "argument --folder: the name must be a path"),
        (
            f"run paper-stochastic ucb1 --seed {'9' * 4000}",
            "jaxbio: seed must be in [0, 4294967295]",
        ),
        ("run paper-stochastic ucb1 --set states 3 --set states 4", "'states' is set twice"),
        (
            "run paper-stochastic ucb1 exp3 ucb1",
            "each LEARNER must be named once, but ucb1 is there twice",
        ),
        ("run paper-stochastic ucb1 nope", "name must be one of"),  # before ucb1 is played
        ("run paper-stochastic ucb1 --figure=--", "argument --figure: '--' is no value"),
        (
            f"theory --actions 8 --states 2 --horizon {'9' * 400}",
            "horizon must be in [1, 268435456]",
        ),
        ("theory --actions 8 --states 2 --horizon 2147483648", "horizon must be in [1, 268435456]"),
        ("advise --actions 2 --states 2 --seconds 0", "seconds must be greater than 0"),
        (
            "phase --family json:dumps",
            "family was called with 8, 2 and FixedDelay(d=2): it must be",
        ),
    ],
)
def test_a_wrong_command_line_is_told_in_one_line(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = ended(capsys, *words.split())
    assert code == 2
    assert text.count("\n") == 1
    assert said in text


@pytest.mark.usefixtures("command")
@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ValueError("two\nlines"), 2, "jaxbio: two lines\n"),
        (MemoryError(), 1, "jaxbio: out of memory\n"),
        (KeyError("x"), 1, "jaxbio: KeyError: 'x' (unexpected: --debug shows where)\n"),
    ],
)
def test_every_error_is_one_line(
    error: Exception,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr("jaxbio.cli.listing.as_text", fail)
    assert ended(capsys, "list") == (code, said)
    with pytest.raises(type(error)):
        cli.main(["list", "--debug"])


@pytest.mark.parametrize("text", ["1", "[]", "{a = 1}", "'x'"])
@pytest.mark.parametrize("name", ["environment", "learners", "axes"])
@pytest.mark.usefixtures("command")
def test_a_table_that_is_none(name: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    tables = {"environment": "{name = 'paper-utility'}", "learners": "{a = {name = 'ucb1'}}"}
    lines = [f"{key} = {value}" for key, value in (tables | {name: text}).items()]
    Path("grid.toml").write_text("\n".join(["horizon = 20", *lines]))
    code, said = ended(capsys, "sweep", "grid.toml", "--quiet")
    assert (code, said.count("\n")) == (2, 1)
    assert name in said or "axis 'a'" in said


@pytest.mark.parametrize("text", ["x = " + "[" * 9999, "x = " + "9" * 5000, "x = '\udcff'"])
@pytest.mark.usefixtures("command")
def test_a_file_that_is_no_toml(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("grid.toml").write_text(text, errors="surrogateescape")
    code, said = ended(capsys, "sweep", "grid.toml")
    assert (code, said.count("\n")) == (2, 1)
    assert "grid.toml is not TOML" in said


def test_reproduce_means_all_experiments_where_none_is_named() -> None:
    chosen = cli.parser().parse_args(["reproduce"]).experiments
    assert reproduce.numbers(chosen) == [1, 2, 3, 4, 5]


INTERRUPTING = """
import builtins, os, signal

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
imported = builtins.__import__

def interrupting(name, *rest, **more):
    if name == "jaxbio.analysis.compare":  # in the middle of the package
        builtins.__import__ = imported
        os.kill(os.getpid(), signal.SIGINT)
    return imported(name, *rest, **more)

builtins.__import__ = interrupting
"""


@pytest.mark.parametrize("way", ["module", "script", "library"])
def test_an_interrupt_during_import(way: str, tmp_path: Path) -> None:
    """The command ends quietly; a program that imports the package gets its KeyboardInterrupt."""
    (tmp_path / "sitecustomize.py").write_text(INTERRUPTING)
    script = tmp_path / "jaxbio"
    script.write_text("import sys\nfrom jaxbio.cli.main import main\nsys.exit(main())\n")
    package = Path(jb.__file__).parents[1]
    words = {"module": ["-m", "jaxbio", "list"], "script": [str(script), "list"]}
    done = subprocess.run(
        [sys.executable, *words.get(way, ["-c", "import jaxbio"])],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(package)])},
        cwd=package,
        capture_output=True,
        text=True,
    )
    if way == "library":
        assert "KeyboardInterrupt" in done.stderr
    else:
        assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_large_seeds_are_refused_or_have_their_own_worlds() -> None:
    try:
        one, two = (rng.run_key(rng.root_key(seed), 0) for seed in (5, 2**32 + 5))
    except ValueError:
        return
    assert np.any(np.asarray(one) != np.asarray(two))


def test_action_as_a_python_number() -> None:
    rollout(learner=Odd("Python number"), rounds=1)


def test_whole_numbers_of_other_kinds_are_sizes() -> None:
    """What was checked is what is played with."""
    sizes: Any = {"ring_depth": 64.0, "lanes": np.float32(4)}
    found = jb.rollout(world(), jb.UCB1(), 0, np.float64(20), **sizes)  # type: ignore
    np.testing.assert_array_equal(found.regret, jb.rollout(world(), jb.UCB1(), 0, 20).regret)
    assert jb.trajectory(world(), jb.UCB1(), 0, np.float64(20), **sizes).action.shape == (20,)  # type: ignore


@pytest.mark.parametrize("name", ["horizon", "rounds", "ring_depth", "lanes"])
def test_sizes_cannot_be_traced(name: str) -> None:
    given = {"horizon": 20, "ring_depth": 64, "lanes": 4, "rounds": 3}

    def play(value: Any) -> Any:
        return rollout(**(given | {name: value})).regret

    words = f"{name} must be a number that is known beforehand, but got one that JAX is tracing"
    with pytest.raises(TypeError, match=words):
        jax.jit(play)(8)


def test_one_run_without_room_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jaxbio.checks.memory.free_memory", lambda: 1e9)
    with pytest.raises(MemoryError, match="a trajectory of 1,000,000,000 rounds takes"):
        jb.trajectory(world(), jb.UCB1(), 0, 10**9)
    with pytest.raises(MemoryError, match="a world of 1,000,000,000 rounds takes"):
        jb.sample_world(world(), 0, 0, 10**9)
    with pytest.raises(MemoryError, match=re.escape("a ring of 536,870,912 rounds (ring_depth)")):
        rollout(ring_depth=2**29)


def test_a_schedule_written_in_c_is_tried_more_than_once() -> None:
    """JAX itself ends the process where it is asked twice for the types of such a function."""
    code = """
import jaxbio as jb, numpy as np
for _ in range(4):
    try:
        jb.Exp3(scale=np.sqrt)
    except TypeError as error:
        print(str(error)[:37])
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout.splitlines() == 4 * ["scale must be a positive number, or a"]
    assert found.returncode == 0
