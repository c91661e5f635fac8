"""Tuning: hyperparameters of a learner by evolution strategies and any optax optimiser.

The search runs in the logarithms of the parameters. A step plays the learner at pairs of points on
either side of where it stands, all on the same runs, and takes the gradient of the mean final
regret from the differences of the pairs (Salimans et al. 2017; directions orthogonal to each other,
Choromanski et al. 2018). Numbers are arguments of the compiled program, so that all steps, and the
held-out runs, share one.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxbio import checks, rng
from jaxbio.analysis.compare import compare
from jaxbio.analysis.tuned import START, TUNED, Step, Tuned
from jaxbio.engine.code.fingerprint import parts
from jaxbio.environment.environment import MAX_HORIZON, Environment
from jaxbio.storage.provenance import surroundings
from jaxbio.storage.store import Store
from jaxbio.sweeps.sweep import sweep
from jaxbio.sweeps.workers import bar
from jaxbio.trees import float_dtype

FORMAT = 2
TRAINING = 0x74756E65  # the stream of the root seed whose worlds only searches play
RATE = 0.2  # of the default optimiser: how far a step moves a logarithm, at most, in the beginning
B1, B2 = 0.5, 0.99  # of Adam: a shorter memory than usual, few steps leave no time to swing


def tune(
    env: Environment,
    learner: Callable[..., Any],
    start: Mapping[str, float],
    *,
    horizon: int,
    runs: int = 512,
    steps: int = 40,
    pairs: int | None = None,
    spread: float = 0.2,
    optimizer: Any = None,
    scaled: bool = True,
    held_out: int = 2048,
    seed: Any = 0,
    store: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    progress: bool = True,
) -> Tuned:
    """Search for hyperparameters with a small mean final regret.

    Args:
      env: the problem.
      learner: a function of the parameters, by name, that makes a learner.
      start: name -> positive number, where the search begins: what theory says.
      horizon: T.
      runs: of each point in each step; every step has new ones.
      steps: of the optimiser.
      pairs: of points in each step (default: as many as there are parameters, at least 2).
      spread: how far the points of a pair are from the middle in the logarithm of each of the n
        parameters, root mean square: along its direction a point is spread sqrt(n) away.
      optimizer: of optax; Adam with a rate that falls from 0.2 to 0 along a cosine by default.
      scaled: measure regret relative to that of the start values on the same runs, so that the
        optimiser's rate has no unit. False: as it is, for regrets that may be 0 or negative.
      held_out: runs of the comparison at the end: run i is that of `simulate` with this seed, and
        none of them is played in the search.
      seed: the root seed. The search has streams of its own: nothing else that is played with this
        seed, `advise` and the studies included, meets its runs.
      store: a folder for finished steps; the same call goes on where it was interrupted.
      workers: blocks in flight; never changes a result.
      progress: show a bar that counts rounds.
    Returns:
      A Tuned, with the held-out comparison to the start values.
    """
    start = _checked_start(start)
    runs, steps = checks.size("runs", runs, 1), checks.size("steps", steps, 1)
    enough = max(2, len(start))
    search = _Search(
        env=_checked_environment(env),
        learner=_checked_learner(learner, start),
        start=start,
        horizon=checks.size("horizon", horizon, 1, MAX_HORIZON),
        runs=runs,
        steps=steps,
        pairs=enough if pairs is None else checks.size("pairs", pairs, 1, 2**16),
        spread=checks.number("spread", spread, 0, 10, open_low=True),
        scaled=checks.boolean("scaled", scaled),
        held_out=checks.size("held_out", held_out, 2),
        seed=checks.seed(seed),
        workers=workers,
    )
    method = _checked_optimizer(optimizer, steps)
    folder = None if store is None else Store(store, _settings(search, method))
    with bar(search.rounds, checks.boolean("progress", progress)) as shown:
        try:
            return _tuned(search, method, folder, shown)
        except KeyboardInterrupt as interrupt:
            if folder is not None:
                interrupt.add_note(f"finished steps are in {folder.path}: the same call goes on")
            raise


@dataclass(frozen=True)
class _Search:
    """What is asked, checked."""

    env: Environment
    learner: Callable[..., Any]
    start: dict[str, float]
    horizon: int
    runs: int
    steps: int
    pairs: int
    spread: float
    scaled: bool
    held_out: int
    seed: Any
    workers: int | None

    @property
    def points(self) -> int:
        """Of a step: both sides of each pair, and the start values to measure by."""
        return 2 * self.pairs + self.scaled

    @property
    def rounds(self) -> int:
        return (self.steps * self.points * self.runs + 2 * self.held_out) * self.horizon

    def play(self, points: list[dict[str, float]], runs: int, seed: Any) -> np.ndarray:
        """[points, runs]: final regrets, the same runs for all points."""

        def learner(point: int) -> Any:
            return _built(self.learner, points[point])

        data = sweep(
            self.env,
            {"tuning": learner},
            {"point": range(len(points))},
            horizon=self.horizon,
            runs=runs,
            seed=seed,
            rounds=1,
            keep="finals",
            workers=self.workers,
            progress=False,
        )
        return data.final_regret.values[0]


def _tuned(search: _Search, method: Any, store: Store | None, shown: Any) -> Tuned:
    place = {
        name: jnp.asarray(math.log(value), float_dtype()) for name, value in search.start.items()
    }
    state, curve = method.init(place), []
    for number in range(search.steps):
        found = _kept(store, number, lambda n=number, at=place: _measured(search, n, at))
        curve.append(_step(place, found))
        shown.update(search.points * search.runs * search.horizon)
        shown.set_postfix_str(", ".join(f"{k} {v:.3g}" for k, v in curve[-1].parameters.items()))
        place, state = _moved(method, state, place, found)
    parameters = _values(place)
    both = [parameters, search.start]
    final = _kept(
        store,
        search.steps,
        lambda: {"regret": search.play(both, search.held_out, search.seed)},
    )
    shown.update(2 * search.held_out * search.horizon)
    return Tuned(
        learner=_built(search.learner, parameters),
        parameters=parameters,
        start=search.start,
        curve=tuple(curve),
        held_out=compare(dict(zip((TUNED, START), final["regret"], strict=True))),
        scaled=search.scaled,
    )


def _moved(method: Any, state: Any, place: Any, found: dict[str, np.ndarray]) -> tuple[Any, Any]:
    """A step of the optimiser: the next place and state."""
    slopes = found["gradient"].astype(jnp.dtype(float_dtype()))
    gradient = {name: jnp.asarray(slope) for name, slope in zip(place, slopes, strict=True)}
    with jax.numpy_dtype_promotion("standard"):  # which optax counts on
        moves, state = method.update(gradient, state, place, value=float(found["score"]))
        return {name: x + moves[name] for name, x in place.items()}, state


def _kept(
    store: Store | None, number: int, play: Callable[[], dict[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    """What the store has of a step, or else what is played."""
    if store is not None and store.has(number):
        return store.load(number)
    arrays = play()
    if store is not None:
        store.save(number, arrays)
    return arrays


def _measured(search: _Search, number: int, place: Any) -> dict[str, np.ndarray]:
    """score: []; gradient: [parameters], both of the runs of this step."""
    middle = np.array([float(x) for x in place.values()])
    moves = search.spread * directions(search.seed, number, search.pairs, len(middle))
    sides = np.concatenate([middle + moves, middle - moves])
    points = [dict(zip(place, np.exp(row).tolist(), strict=True)) for row in sides]
    points += [search.start] * search.scaled
    worlds = training_seed(search.seed, number)
    regret = search.play(points, search.runs, worlds).mean(axis=1)
    unit = _unit(regret[-1]) if search.scaled else 1.0
    up, down = regret[: search.pairs] / unit, regret[search.pairs : 2 * search.pairs] / unit
    slopes = (up - down) / (2 * search.spread**2)
    return {"score": (up + down).mean() / 2, "gradient": (slopes[:, None] * moves).mean(axis=0)}


def training_seed(seed: Any, number: int) -> Any:
    """Of the runs of a step. Whatever else is played with the same seed, `advise` included, has
    other runs: there a tuned learner must not meet those that it was chosen on.
    """
    return rng.stream_key(rng.stream_key(seed, TRAINING), number)


def _unit(regret: float) -> float:
    if regret <= 0:
        raise ValueError(
            f"the start values have a mean regret of {regret:g}, which cannot be the unit: "
            "pass scaled=False"
        )
    return regret


def directions(seed: Any, number: int, pairs: int, count: int) -> np.ndarray:
    """[pairs, count]: of length sqrt(count), each uniform, and orthogonal as far as they can be."""
    generator = np.random.default_rng([*rng.root_words(seed).tolist(), number])
    turns = []
    for _ in range(-(-pairs // count)):
        q, r = np.linalg.qr(generator.normal(size=(count, count)))
        turns.append(q * np.sign(np.diag(r)))
    return math.sqrt(count) * np.concatenate(turns)[:pairs]


def _step(place: Any, found: dict[str, np.ndarray]) -> Step:
    norm = float(np.linalg.norm(found["gradient"]))
    return Step(_values(place), float(found["score"]), norm)


def _values(place: Any) -> dict[str, float]:
    return {name: math.exp(float(x)) for name, x in place.items()}


def _built(learner: Callable[..., Any], values: dict[str, float]) -> Any:
    try:
        return checks.learner("learner(...)", learner(**values))
    except (TypeError, ValueError) as error:
        given = ", ".join(f"{name}={value:.6g}" for name, value in values.items())
        error.add_note(f"learner({given})")
        raise


def _checked_start(start: Any) -> dict[str, float]:
    if not isinstance(start, Mapping) or not start:
        raise TypeError(
            f"start must map names of parameters to numbers, but got {checks.shown(start)}"
        )
    return {
        name: checks.number(f"start[{name!r}]", value, 0, open_low=True)
        for name, value in start.items()
    }


def _checked_environment(env: Any) -> Environment:
    if not isinstance(env, Environment):
        raise TypeError(f"env must be an Environment, but got {checks.shown(env)}")
    return env


def _checked_learner(learner: Any, start: dict[str, float]) -> Callable[..., Any]:
    made = hasattr(learner, "learn") and not isinstance(learner, type)
    if made or not callable(learner):
        raise TypeError(
            f"learner must be a function of {', '.join(start)} that makes one, "
            f"but got {checks.shown(learner)}"
        )
    _built(learner, start)
    return learner


def _checked_optimizer(optimizer: Any, steps: int) -> Any:
    import optax  # takes a while

    if optimizer is None:
        optimizer = optax.adam(optax.cosine_decay_schedule(RATE, steps), b1=B1, b2=B2)
    if not isinstance(optimizer, optax.GradientTransformation):
        raise TypeError(f"optimizer must be one of optax, but got {checks.shown(optimizer)}")
    return optax.with_extra_args_support(optimizer)


def _settings(search: _Search, method: Any) -> dict[str, Any]:
    """Everything that the numbers depend on."""
    plain = ("horizon", "runs", "steps", "pairs", "spread", "scaled", "held_out", "start")
    return {
        "format": FORMAT,
        **surroundings("analysis.tune"),
        "seed": rng.root_words(search.seed).tolist(),
        **{name: getattr(search, name) for name in plain},
        "environment": parts("environment", search.env),
        "learner": parts("learner", _built(search.learner, search.start)),
        "made by": parts("learner", search.learner),
        "optimizer": parts("optimizer", method),
    }
