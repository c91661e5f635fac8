"""The theorems' bounds against many runs: how often is each exceeded, and how loose is it?

A theorem says: with probability at least 1 - delta the regret is at most a bound. Here the learner
that it supposes is played many times, on delays that are the same in all runs, and the share of
runs above the bound gets an exact (Clopper-Pearson) interval.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from jaxbio import checks
from jaxbio.analysis.intervals import judged, of_mean, of_quantile, of_share
from jaxbio.environment.delays import TableDelay, realised_delays
from jaxbio.environment.environment import MAX_HORIZON, Environment, check_environment
from jaxbio.environment.instances import make_environment
from jaxbio.storage.store import part
from jaxbio.studies.guarantees.lemmas import LEMMAS, Lemma, Terms
from jaxbio.studies.guarantees.theorems import EXPECTATIONS, GUARANTEES, Expectation, Guarantee
from jaxbio.studies.guarantees.watched import watched
from jaxbio.sweeps.sweep import sweep

MEAN_RUNS = 1_000  # a mean needs fewer runs than a far quantile, and Tsallis-INF is slower
PROBLEM = "paper-utility"  # where none is given
TRIVIAL = "cannot fail"  # the bound is no smaller than any regret that is possible


def check_guarantees(
    env: Environment | None = None,
    *,
    horizons: Sequence[int] = (1_000, 10_000),
    deltas: Sequence[float] = (0.2, 0.05, 0.01),
    runs: int = 4_000,
    seed: int = 0,
    guarantees: Sequence[Guarantee] = GUARANTEES,
    expectations: Sequence[Expectation] = EXPECTATIONS,
    lemmas: Sequence[Lemma] = LEMMAS,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> xr.Dataset:
    """Play the learner of every guarantee `runs` times and compare its regret with the bound.

    Args:
      env: a problem with stochastic losses; by default "paper-utility". Random delays are
        drawn once for all runs: the theorems are about one sequence.
      horizons, deltas: every pair is a game of its own.
      guarantees, expectations: what is tested, with high probability and on average; the latter
        with at most 1,000 runs. lemmas: what is checked in every run of a guarantee.
      store: a folder for finished blocks; the same call goes on where it was interrupted.
    Returns:
      A Dataset. [guarantee, horizon, delta]: bound; regret_quantile at 1 - delta, with quantile_low
      and quantile_high; ratio, bound / regret_quantile; exceeded, runs above the bound, with
      share_low and share_high, the Clopper-Pearson interval of their share; verdict ("yes", it
      holds, "no", "undecided", or "cannot fail" where no regret could be larger); dominant, the
      largest term. [..., term]: terms. [lemma, horizon, delta]: failures, in runs; tightness, the
      share of the limit that the closest run reaches; lemma_verdict. [expectation, horizon]:
      expected_bound, regret_mean, mean_low, mean_high, expected_verdict. [horizon]: most_possible,
      the regret of playing the worst action throughout. Intervals are of 95 %. The regret of a
      guarantee that is about a part of it (`Guarantee.less`) is that part.
    """
    asked = {"horizons": horizons, "deltas": deltas, "guarantees": guarantees}
    for name, given in asked.items():
        if not checks.several(name, given, "values"):
            raise ValueError(f"{name} must have at least one value, but got []")
    guarantees = _all_of("guarantees", guarantees, Guarantee)
    expectations = _all_of("expectations", expectations, Expectation)
    lemmas = _all_of("lemmas", lemmas, Lemma)
    axes = {
        "horizon": [checks.size("horizons", one, 2, MAX_HORIZON) for one in horizons],
        "delta": [checks.probability_of_error("deltas", one) for one in deltas],
    }
    env = make_environment(PROBLEM) if env is None else env
    env = written_down(_with_means(env), seed, max(axes["horizon"]))
    games = {T: _game(env, seed, T) for T in axes["horizon"]}
    options = {"seed": seed, "rounds": 1, "keep": "finals", "progress": progress}
    learners = {one.name: _in_game(one.learner, env) for one in guarantees}
    played = sweep(env, learners, axes, runs=runs, store=part(store, "probable"), **options)
    used = [lemma for lemma in lemmas if lemma.about in learners]
    parts = [_tested(guarantees, played, games, env), _checked(used, played, games)]
    if expectations:
        learners = {one.name: one.learner for one in expectations}
        axes, fewer = {"horizon": axes["horizon"]}, min(runs, MEAN_RUNS)
        means = sweep(env, learners, axes, runs=fewer, store=part(store, "expected"), **options)
        parts.append(_averaged(expectations, means, games, env))
    return xr.merge(parts).assign_attrs(_about(env, games, runs, seed))


def _all_of(name: str, given: Any, kind: type) -> list[Any]:
    """A list of things of one kind."""
    found = checks.several(name, given, f"{kind.__name__}s")
    for one in found:
        if not isinstance(one, kind):
            raise TypeError(f"{name} must be {kind.__name__}s, but got {checks.shown(one)}")
    return found


def _with_means(env: Environment) -> Environment:
    check_environment(env)
    if np.ndim(env.losses.all_means()) != 1:
        raise ValueError(
            "the guarantees are for stochastic losses, but the environment has "
            f"{type(env.losses).__name__}"
        )
    return env


def _about(env: Environment, games: dict[int, Terms], runs: int, seed: int) -> dict[str, Any]:
    return {
        "title": "jaxbio guarantees",
        "runs": runs,
        "mean_runs": min(runs, MEAN_RUNS),
        "seed": str(seed),
        "actions": env.num_actions,
        "states": env.num_states,
        "mean_delay": float(np.mean(games[max(games)]["delays"])),
    }


def written_down(env: Environment, seed: Any, rounds: int) -> Environment:
    """The same problem with one sequence of delays for all runs: that of run 0."""
    if env.delays.written_down:
        return env
    return dataclasses.replace(env, delays=TableDelay(realised_delays(env.delays, seed, rounds)))


def most_possible(env: Environment, horizon: int) -> float:
    """A ceiling on R_T without any learning: the largest gap in every round."""
    rounds: Any = np.int32(horizon)
    gaps = env.gaps(env.best_action(rounds))
    return horizon * (1.0 if gaps is None else float(np.max(gaps)))


def _in_game(learner: Any, env: Environment) -> Any:
    """As a sweep takes it: under observation, a function of delta where delta matters."""
    if hasattr(learner, "learn"):
        return lambda horizon: watched(learner, env, horizon)
    return lambda horizon, delta: watched(learner(delta), env, horizon)


def _game(env: Environment, seed: Any, horizon: int) -> Terms:
    """The numbers that bounds are made of; delays as they are, not cut at the horizon."""
    return {
        "horizon": horizon,
        "num_actions": env.num_actions,
        "num_states": env.num_states,
        "delays": realised_delays(env.delays, seed, horizon),
    }


# --- with high probability


@dataclass(frozen=True)
class Outcome:
    """One guarantee at one horizon and delta; fields as `check_guarantees` returns them."""

    bound: float
    regret_quantile: float
    quantile_low: float
    quantile_high: float
    exceeded: int
    share_low: float
    share_high: float
    verdict: str
    dominant: str
    terms: dict[str, float]

    @property
    def ratio(self) -> float:
        return self.bound / self.regret_quantile if self.regret_quantile > 0 else np.inf


def compared(guarantee: Guarantee, regret: np.ndarray, terms: Terms, most: float) -> Outcome:
    """One guarantee against the final regret [runs] of its learner, which is `most` at most."""
    bound = guarantee.bound(**terms)
    exceeded = int((regret > bound.total).sum())
    share = of_share(exceeded, len(regret))
    verdict = TRIVIAL if bound.total >= most else judged(*share, terms["delta"])
    return Outcome(
        bound.total,
        *of_quantile(regret, 1 - terms["delta"]),
        exceeded,
        *share,
        verdict,
        max(bound.terms, key=lambda term: bound.terms[term]),
        bound.terms,
    )


def _facts(played: xr.Dataset, learner: str, horizon: int, delta: float) -> xr.Dataset:
    """All that is known of the runs of a learner at a point."""
    return played.sel(learner=learner, horizon=horizon, delta=delta)


def _axes(played: xr.Dataset) -> dict[str, list[Any]]:
    return {name: played[name].values.tolist() for name in ("horizon", "delta")}


def _table(names: Sequence[str], played: xr.Dataset, entry: Callable[..., Any]) -> np.ndarray:
    """Objects [names, horizon, delta] made by entry(index of the name, horizon, delta)."""
    horizons, deltas = _axes(played).values()
    made = np.empty((len(names), len(horizons), len(deltas)), object)
    for index in np.ndindex(made.shape):
        i, j, k = index
        made[index] = entry(i, horizons[j], deltas[k])
    return made


def _each(objects: np.ndarray, field: str) -> np.ndarray:
    values = np.array([getattr(one, field) for one in objects.ravel()])
    return values.reshape(objects.shape)


def _tested(
    guarantees: Sequence[Guarantee], played: xr.Dataset, games: dict[int, Terms], env: Environment
) -> xr.Dataset:
    most = {horizon: most_possible(env, horizon) for horizon in games}

    def entry(i: int, horizon: int, delta: float) -> Outcome:
        one, facts = guarantees[i], _facts(played, guarantees[i].name, horizon, delta)
        regret, ceiling = facts.final_regret.values, most[horizon]
        if one.less is not None:
            regret, ceiling = regret - facts[one.less].values, math.inf
        return compared(one, regret, games[horizon] | {"delta": delta}, ceiling)

    names = [one.name for one in guarantees]
    outcomes, dims = _table(names, played, entry), ("guarantee", "horizon", "delta")
    fields = [field.name for field in dataclasses.fields(Outcome) if field.name != "terms"]
    data: dict[str, Any] = {name: (dims, _each(outcomes, name)) for name in [*fields, "ratio"]}
    terms = list(dict.fromkeys(term for one in outcomes.ravel() for term in one.terms))
    shares = [[one.terms.get(term, np.nan) for term in terms] for one in outcomes.ravel()]
    data["terms"] = ((*dims, "term"), np.reshape(shares, (*outcomes.shape, len(terms))))
    data["certified"] = ("guarantee", [one.certified for one in guarantees])
    data["most_possible"] = ("horizon", list(most.values()))
    return xr.Dataset(data, {"guarantee": names, "term": terms, **_axes(played)})


# --- in every run


@dataclass(frozen=True)
class Check:
    """One lemma at one horizon and delta."""

    failures: int
    tightness: float
    lemma_verdict: str


def checked(lemma: Lemma, facts: xr.Dataset, terms: Terms) -> Check:
    """One lemma in the runs of its learner."""
    value, limit = lemma.value(facts, terms), lemma.limit(terms)
    failures = int((value > limit).sum())
    share = of_share(failures, len(value))
    closest = float(value.max() / limit) if limit else float("nan")
    return Check(failures, closest, judged(*share, lemma.allowed(terms["delta"])))


def _checked(lemmas: Sequence[Lemma], played: xr.Dataset, games: dict[int, Terms]) -> xr.Dataset:
    def entry(i: int, horizon: int, delta: float) -> Check:
        facts = _facts(played, lemmas[i].about, horizon, delta)
        return checked(lemmas[i], facts, games[horizon] | {"delta": delta})

    names = [lemma.name for lemma in lemmas]
    checks_made, dims = _table(names, played, entry), ("lemma", "horizon", "delta")
    fields = [field.name for field in dataclasses.fields(Check)]
    data = {name: (dims, _each(checks_made, name)) for name in fields}
    return xr.Dataset(data, {"lemma": names, **_axes(played)})


# --- on average


def _averaged(
    expectations: Sequence[Expectation],
    played: xr.Dataset,
    games: dict[int, Terms],
    env: Environment,
) -> xr.Dataset:
    rows = []
    for one in expectations:
        for horizon, terms in games.items():
            regret = played.final_regret.sel(learner=one.name, horizon=horizon).values
            bound = one.bound(**terms).total
            mean, low, high = of_mean(regret)
            trivial = bound >= most_possible(env, horizon)
            verdict = TRIVIAL if trivial else judged(float(low), float(high), bound)
            rows.append((bound, mean, low, high, verdict))
    names = ("expected_bound", "regret_mean", "mean_low", "mean_high", "expected_verdict")
    shape = (len(expectations), len(games))
    data = {
        name: (("expectation", "horizon"), np.reshape(column, shape))
        for name, column in zip(names, zip(*rows, strict=True), strict=True)
    }
    return xr.Dataset(
        data, {"expectation": [one.name for one in expectations], "horizon": list(games)}
    )
