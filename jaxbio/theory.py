"""Regret bounds and the delay facts they rest on: NumPy float64, named terms, no JAX.

Rounds are 1..T, and the loss of round t is seen at the end of round t + d_t. Delays enter as one
integer (every round alike) or as a sequence with one entry per round, and are clipped to
d_t <= T - t before anything is computed: what would arrive later never influences an action.

Theorems and equations are named by their labels in the LaTeX source, which arXiv has, of Esposito
et al., "Delayed Bandits: When Do Intermediate Observations Help?" (arXiv:2305.19036, ICML 2023).
Where its constants do not follow from its proofs, the docstring says so and says what is returned.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "STATES_CONSTANT",
    "Bound",
    "begin_counts",
    "clip_delays",
    "confidence_constant",
    "d_max",
    "dada_bound",
    "end_counts",
    "exp3_bound",
    "exp3_rate",
    "expected_bound",
    "hindsight_bound",
    "lower_bound",
    "metaadabio_bound",
    "metabio_bound",
    "phi_delay",
    "sigma_max",
    "states_lower_bound",
    "switch_round",
    "switch_threshold",
    "total_delay",
]

Integers = NDArray[np.int64]

STATES_CONSTANT = math.sqrt(1 / (6 * math.log(4 / 3))) / 16
"""The factor 1/16 sqrt(1 / (6 ln(4/3))) = 0.0476 that the proof of Theorem STlowerB puts before
sqrt(ST) when S <= 2d. `states_lower_bound` evaluates the same proof without its roundings."""


# --- the result


@dataclass(frozen=True)
class Bound:
    """A bound as the sum (or, for lower bounds, the maximum) of named terms."""

    name: str  # the statement it evaluates
    items: tuple[tuple[str, float], ...]  # (term, value), in the order of the statement
    holds: str  # "with probability at least 0.9", "in expectation", ...
    combine: Literal["sum", "max"] = "sum"

    @property
    def terms(self) -> dict[str, float]:
        """Name -> value of every term; a fresh dict, the bound itself cannot be changed."""
        return dict(self.items)

    @property
    def total(self) -> float:
        """The bound: the sum of the terms, or the largest when `combine` is "max"."""
        values = [value for _, value in self.items]
        return max(values) if self.combine == "max" else math.fsum(values)

    def __str__(self) -> str:
        sign = ", " if self.combine == "max" else " + "
        listed = sign.join(f"{name} {value:.6g}" for name, value in self.items)
        right = f"max({listed})" if self.combine == "max" else listed
        return f"{self.name}, {self.holds}: {self.total:.6g} = {right}"


def _bound(
    name: str, terms: Mapping[str, float], holds: str, combine: Literal["sum", "max"] = "sum"
) -> Bound:
    items = tuple((term, float(value)) for term, value in terms.items())
    return Bound(name=name, items=items, holds=holds, combine=combine)


def _probably(delta: float) -> str:
    return f"with probability at least {1 - delta:.12g}"


# --- validation

_LONGEST = 200  # letters of a value in a message
_MOST = 2**53  # of an integer: products of two stay finite, and floats are exact up to it
_FACTOR = 1e100  # of a constant of an analysis: no rate becomes 0
MOST_ROUNDS = 2**28  # where there is a number for every round: 2 GiB each time


def _shown(value: Any) -> str:
    """Its repr, cut where it is long, and its type where it has none."""
    try:
        text = repr(value)
    except Exception:  # of a class of the user's, or an integer of more digits than Python prints
        return f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _array(value: Any) -> NDArray[Any] | None:
    """None where NumPy, or a class of the user's, cannot make one of it."""
    try:
        return np.asarray(value)
    except Exception:
        return None


def _integer(name: str, value: Any, least: int, most: int = _MOST) -> int:
    try:
        number = None if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except Exception:  # it is none, or a class of the user's says so in its own way
        number = None
    if number is None or number < least:
        raise ValueError(f"{name} must be an integer >= {least}, got {_shown(value)}")
    if number > most:
        raise ValueError(f"{name} must be at most {most}, got {_shown(value)}")
    return number


def _between(name: str, value: Any, low: float, high: float) -> float:
    number = _array(value)
    fine = number is not None and number.ndim == 0 and number.dtype.kind in "fiu"
    if number is None or not fine or not low < number < high:
        raise ValueError(f"{name} must lie in ({low:g}, {high:g}), got {_shown(value)}")
    return float(number)


def _choice(name: str, value: Any, allowed: Collection[str]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(sorted(allowed))}, got {_shown(value)}")
    return value


def _boolean(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {_shown(value)}")
    return bool(value)


def _numbers(delays: ArrayLike) -> NDArray[np.float64]:
    """Delays as float64 (exact below 2^53), after the checks that need no horizon."""
    array = _array(delays)
    if array is None:
        raise ValueError(f"delays must be an integer or a flat sequence, got {_shown(delays)}")
    if array.ndim > 1 or array.size == 0:
        raise ValueError(
            f"delays must be an integer or a flat, non-empty sequence, got shape {array.shape}"
        )
    if array.dtype.kind not in "fiu":
        raise ValueError(f"delays must be non-negative integers, got dtype {array.dtype}")
    numbers = array.astype(np.float64)
    good = np.isfinite(numbers) & (numbers >= 0) & (np.floor(numbers) == numbers)
    if not good.all():
        index = int(np.argmin(good))
        where = f" in round {index + 1}" if array.ndim else ""
        raise ValueError(
            f"delays must be non-negative integers, got {numbers.flat[index]:g}{where}"
        )
    return numbers


def _rounds(numbers: NDArray[np.float64], horizon: SupportsIndex | None) -> int:
    if horizon is None:
        if numbers.ndim == 0:
            raise ValueError("horizon must be given when delays is one integer, got None")
        return len(numbers)
    rounds = _integer("horizon", horizon, 1, MOST_ROUNDS)
    if numbers.ndim and len(numbers) != rounds:
        raise ValueError(
            f"delays must have one entry per round, {rounds} (horizon), got {len(numbers)}"
        )
    return rounds


# --- facts about a delay sequence


def clip_delays(delays: ArrayLike, *, horizon: SupportsIndex | None = None) -> Integers:
    """Delays cut at the horizon, min(d_t, T - t), one per round.

    `delays` is one integer or a sequence of T of them; `horizon` may be left out for a sequence.
    """
    numbers = _numbers(delays)
    rounds = _rounds(numbers, horizon)
    return np.minimum(numbers, np.arange(rounds - 1, -1, -1)).astype(np.int64)


def _arrived(clipped: Integers) -> Integers:
    """Entry t - 1: how many losses have been seen by the end of round t."""
    due = np.arange(len(clipped)) + clipped
    return np.cumsum(np.bincount(due, minlength=len(clipped)))


def begin_counts(delays: ArrayLike, *, horizon: SupportsIndex | None = None) -> Integers:
    """Losses outstanding when the action of round t is drawn: #{j < t : j + d_j >= t}.

    This is the count inside DAda-Exp3's learning rate. It equals the end count of round t - 1.
    """
    return np.concatenate(([0], end_counts(delays, horizon=horizon)[:-1]))


def end_counts(delays: ArrayLike, *, horizon: SupportsIndex | None = None) -> Integers:
    """Losses outstanding after the arrivals of round t: sigma_t = #{j <= t : j + d_j > t}.

    Round t itself counts unless its delay is 0. Clipping makes the last entry 0.
    """
    clipped = clip_delays(delays, horizon=horizon)
    return np.arange(1, len(clipped) + 1) - _arrived(clipped)


def total_delay(delays: ArrayLike, *, horizon: SupportsIndex | None = None) -> int:
    """Total clipped delay D_T, which is also the sum of the begin counts and of the end counts."""
    return int(clip_delays(delays, horizon=horizon).sum())


def sigma_max(delays: ArrayLike, *, horizon: SupportsIndex | None = None) -> int:
    """Most losses outstanding at once; the same for begin and end counts, never above d_max."""
    return int(end_counts(delays, horizon=horizon).max())


def d_max(delays: ArrayLike, *, horizon: SupportsIndex | None = None) -> int:
    """Largest clipped delay."""
    return int(clip_delays(delays, horizon=horizon).max())


def phi_delay(
    delays: ArrayLike, *, num_states: SupportsIndex, horizon: SupportsIndex | None = None
) -> int:
    """Ceiling D_Phi on the delay MetaBIO waits for (eq. phi, Lemma total-delay-bound).

    The sum of the min(2 S sigma_max, T) largest clipped delays.
    """
    states = _integer("num_states", num_states, 1)
    clipped = clip_delays(delays, horizon=horizon)
    kept = min(2 * states * sigma_max(clipped), len(clipped))
    return int(np.sort(clipped)[len(clipped) - kept :].sum())


def confidence_constant(*, num_actions: SupportsIndex, delta: float) -> float:
    """C_{K,delta} = 3 ln K + ln(12 / delta).

    The bounds evaluate it at multiples of their delta, up to 6 delta, so any value in (0, 12)
    is accepted.
    """
    actions = _integer("num_actions", num_actions, 2)
    return 3 * math.log(actions) + math.log(12 / _between("delta", delta, 0, 12))


# --- upper bounds with high probability

_LOWER_ORDERS = {"sigma_max": sigma_max, "d_max": d_max}
_SHARES = {"realized": 2, "pseudo": 3}  # d' = delta / share: how many events share delta
_TUNINGS = ("corrected", "anytime", "printed")
_SAFETY = {"safe": 3 / 2, "printed": 2}  # C_{K, x delta}: 3 ln K + ln(8/delta) or ln(6/delta)


def _lower_order(kind: str, clipped: Integers) -> float:
    """(sigma_max + 2) / 2, or the same with d_max."""
    return (_LOWER_ORDERS[_choice("lower_order", kind, _LOWER_ORDERS)](clipped) + 2) / 2


def _dada_scale(tuning: str, actions: int, log: float) -> float:
    """The a of eta_t = a / sqrt(2 K t + sum of begin counts), with log = ln(1 / d')."""
    if tuning == "anytime":
        return math.sqrt(3 * math.log(actions)) / 2
    root = math.sqrt(3 * math.log(actions) + log)
    return root if tuning == "printed" else root / 2


def _dada_leading(
    rounds: int, actions: int, delay: int, tuning: str, log: float, split: bool
) -> dict[str, float]:
    """sqrt(2 K T + D_T) ((3/2 ln K + log / 2) / a + 2 a), by root or by origin."""
    scale = _dada_scale(tuning, actions, log)
    learning = 1.5 * math.log(actions) / scale + 2 * scale
    confidence = log / (2 * scale)
    if split:
        factor = learning + confidence
        return {
            "actions": factor * math.sqrt(2 * actions * rounds),
            "delays": factor * math.sqrt(delay),
        }
    root = math.sqrt(2 * actions * rounds + delay)
    return {"learning": learning * root, "confidence": confidence * root}


def dada_bound(
    *,
    horizon: SupportsIndex,
    num_actions: SupportsIndex,
    delays: ArrayLike,
    delta: float,
    tuning: str = "corrected",
    regret: str = "realized",
    lower_order: str = "sigma_max",
    split: bool | None = None,
) -> Bound:
    """Regret of DAda-Exp3, which ignores the states, with probability at least 1 - delta.

    With d' = delta/2, B = 3 ln K + ln(1/d') and M = 2 K T + D_T, the leading part is, by `tuning`,

    - "corrected": 2 sqrt(2 K T B) + 2 sqrt(D_T B), eq. improveddada-1, with
      eta_t = sqrt(B / (4 (2 K t + sum of begin counts)));
    - "anytime": 2 sqrt(3 M ln K) + sqrt(M / (3 ln K)) ln(1/d'), Theorem dadaexp, with a rate
      that does not know delta;
    - "printed": 1.25 times the corrected one. The learning rate printed in the paper is twice
      the one that gives its own eq. improveddada-1, and the same proof then yields this.

    (sigma_max + 2)/2 ln(1/d') is added. `lower_order="d_max"` puts the largest delay in its
    place: re-deriving the high-probability step gives d_max, the paper argues for sigma_max, so
    use d_max where a certified ceiling is wanted. The two agree for a fixed delay.

    `regret="pseudo"` bounds R_T, in mean losses, instead: three events share delta, d' = delta/3
    throughout, and sqrt(2 T ln(6/delta)) is added (eq. improveddada). A learner tuned to a fixed
    delta must be tuned to this d', that is, to confidence 2 delta / 3.

    `split` takes the square root of M apart (terms "actions" and "delays") or not ("learning" and
    "confidence", the tighter form). None does what the named statement does: only Theorem dadaexp
    keeps M together. Compare tunings with one and the same `split`.
    """
    rounds = _integer("horizon", horizon, 1)
    actions = _integer("num_actions", num_actions, 2)
    delta = _between("delta", delta, 0, 1)
    tuning = _choice("tuning", tuning, _TUNINGS)
    share = _SHARES[_choice("regret", regret, _SHARES)]
    clipped = clip_delays(delays, horizon=rounds)
    log = math.log(share / delta)
    apart = tuning != "anytime" if split is None else _boolean("split", split)
    terms = _dada_leading(rounds, actions, total_delay(clipped), tuning, log, apart)
    terms["lower_order"] = _lower_order(lower_order, clipped) * log
    if regret == "pseudo":
        terms["regret_gap"] = math.sqrt(2 * rounds * math.log(2 * share / delta))
    return _bound(f"DAda-Exp3 ({tuning}, {regret} regret)", terms, _probably(delta))


def metabio_bound(
    *,
    horizon: SupportsIndex,
    num_actions: SupportsIndex,
    num_states: SupportsIndex,
    delays: ArrayLike,
    delta: float,
    lower_order: str = "sigma_max",
) -> Bound:
    """Regret R_T of MetaBIO around DAda-Exp3 (Theorem metaif), stochastic losses.

    With C = C_{K,3 delta} = 3 ln K + ln(4/delta):
    2 sqrt(2 K T C) + 7 sqrt(S T ln(4 S T / delta)) + 2 sqrt(D_Phi C)
    + (sigma_max + 2)/2 ln(4/delta). It supposes DAda-Exp3 with confidence delta/2 and the
    corrected rate; the rate as printed costs 1.25 times the terms "actions" and "delays".

    A sanity check, not a certified ceiling: whether a round waits depends on its state, hence on
    its action, while DAda-Exp3's theorem is for delays that the action does not choose. For
    sigma_max against d_max see `dada_bound`.
    """
    rounds = _integer("horizon", horizon, 1)
    actions = _integer("num_actions", num_actions, 2)
    states = _integer("num_states", num_states, 2)
    delta = _between("delta", delta, 0, 1)
    clipped = clip_delays(delays, horizon=rounds)
    constant = confidence_constant(num_actions=actions, delta=3 * delta)
    pairs = states * rounds
    terms = {
        "actions": 2 * math.sqrt(2 * actions * rounds * constant),
        "states": 7 * math.sqrt(pairs * math.log(4 * pairs / delta)),
        "delays": 2 * math.sqrt(phi_delay(clipped, num_states=states) * constant),
        "lower_order": _lower_order(lower_order, clipped) * math.log(4 / delta),
    }
    return _bound("MetaBIO (Theorem metaif)", terms, _probably(delta))


def metaadabio_bound(
    *,
    horizon: SupportsIndex,
    num_actions: SupportsIndex,
    num_states: SupportsIndex,
    delays: ArrayLike,
    delta: float,
    constants: str = "safe",
    lower_order: str = "sigma_max",
) -> Bound:
    """Regret R_T of MetaAdaBIO around DAda-Exp3 (Theorem metaifswitch), stochastic losses.

    3 min(7 sqrt(S T ln(8 S T / delta)), sqrt(D_T C)) + 6 sqrt(K T C) + 2 sqrt(D_Phi C)
    + (sigma_max + 2) ln(8/delta), for the switching rule "theory", started afresh at the switch.

    `constants="printed"` takes C = C_{K,2 delta} = 3 ln K + ln(6/delta), as stated. After the
    switch MetaBIO runs with confidence delta/2, which needs C_{K,3 delta/2} = 3 ln K + ln(8/delta)
    where the proof prints C_{K,3 delta}, so the stated C is slightly too small. The default is
    "safe": ln(8/delta) everywhere. (The round in which the rule triggers is still played before
    the switch; rounding 4 + 2 sqrt(2) up to 7 pays for it.)

    A sanity check, not a certified ceiling, for the reason given in `metabio_bound`.
    """
    rounds = _integer("horizon", horizon, 1)
    actions = _integer("num_actions", num_actions, 2)
    states = _integer("num_states", num_states, 2)
    delta = _between("delta", delta, 0, 1)
    multiple = _SAFETY[_choice("constants", constants, _SAFETY)]
    clipped = clip_delays(delays, horizon=rounds)
    constant = confidence_constant(num_actions=actions, delta=multiple * delta)
    pairs = states * rounds
    by_states = 7 * math.sqrt(pairs * math.log(8 * pairs / delta))
    by_delays = math.sqrt(total_delay(clipped) * constant)
    terms = {
        "states_or_delays": 3 * min(by_states, by_delays),
        "actions": 6 * math.sqrt(actions * rounds * constant),
        "delays": 2 * math.sqrt(phi_delay(clipped, num_states=states) * constant),
        "lower_order": 2 * _lower_order(lower_order, clipped) * math.log(8 / delta),
    }
    return _bound(f"MetaAdaBIO (Theorem metaifswitch, {constants})", terms, _probably(delta))


def hindsight_bound(*, horizon: SupportsIndex, num_actions: SupportsIndex, delta: float) -> Bound:
    """Regret R_T of HindsightExp3 less the error of its prices E_T; not in the paper.

    With a = sqrt(B) / 2, B = 3 ln K + ln(3/delta):
    sqrt(2 K T) ((ln K + ln(3/delta) / 2) / a + 3/2 a) + 3/4 ln(3/delta) + sqrt(T ln(3/delta) / 2).
    It supposes confidence 2 delta / 3, so that eta_t = a / sqrt(2 K t), and stochastic losses;
    prices, delays and the mapping may be any. No bound on E_T itself is known: it is 0 where all
    prices are right, and else what they cost.
    """
    rounds = _integer("horizon", horizon, 1)
    actions = _integer("num_actions", num_actions, 2)
    delta = _between("delta", delta, 0, 1)
    log = math.log(3 / delta)
    scale = _dada_scale("corrected", actions, log)
    root = math.sqrt(2 * actions * rounds)
    terms = {
        "learning": (math.log(actions) / scale + 1.5 * scale) * root,
        "confidence": log / (2 * scale) * root,
        "lower_order": 0.75 * log,
        "regret_gap": math.sqrt(rounds * log / 2),
    }
    return _bound("HindsightExp3 less the error of its prices", terms, _probably(delta))


# --- upper bounds in expectation

_EXPECTED = {"metaadabio": "MetaAdaBIO", "metabio": "MetaBIO", "tsallis-inf": "Tsallis-INF"}


def expected_bound(
    *,
    horizon: SupportsIndex,
    num_actions: SupportsIndex,
    num_states: SupportsIndex,
    delays: ArrayLike,
    learner: str = "metaadabio",
) -> Bound:
    """Expected regret around the delayed Tsallis-INF, stochastic losses.

    - "tsallis-inf": 4 sqrt(K T) + sqrt(8 D_T ln K), simple tuning; the states do not matter;
    - "metabio": 4 sqrt(K T) + sqrt(8 D_Phi ln K) + 6 sqrt(S T ln(2 S T)),
      eq. expectedregret-metaif;
    - "metaadabio": 4 sqrt(2 K T) + sqrt(8 D_Phi ln K)
      + 2 min(6 sqrt(S T ln(2 S T)), sqrt(8 D_T ln K)), Proposition expectedregret, with the
      switching rule "expected".

    The last two feed plain means and rest on these being unbiased, which adaptive sampling makes
    only nearly true; and the perceived delays depend on the action (`metabio_bound`). Sanity
    checks, not certified ceilings.
    """
    rounds = _integer("horizon", horizon, 1)
    actions = _integer("num_actions", num_actions, 2)
    states = _integer("num_states", num_states, 2)
    learner = _choice("learner", learner, _EXPECTED)
    clipped = clip_delays(delays, horizon=rounds)
    by_states = 6 * math.sqrt(states * rounds * math.log(2 * states * rounds))
    by_delays = math.sqrt(8 * total_delay(clipped) * math.log(actions))
    waited = math.sqrt(8 * phi_delay(clipped, num_states=states) * math.log(actions))
    by_actions = 4 * math.sqrt(actions * rounds)
    terms = {
        "tsallis-inf": {"actions": by_actions, "delays": by_delays},
        "metabio": {"actions": by_actions, "delays": waited, "states": by_states},
        "metaadabio": {
            "actions": math.sqrt(2) * by_actions,
            "delays": waited,
            "states_or_delays": 2 * min(by_states, by_delays),
        },
    }
    return _bound(f"{_EXPECTED[learner]} (Tsallis-INF)", terms[learner], "in expectation")


def exp3_rate(
    *,
    horizon: SupportsIndex,
    num_actions: SupportsIndex,
    delays: ArrayLike,
    variance: float = math.e / 2,
    stability: float = 2 * math.e,
) -> float:
    """Fixed learning rate of delayed Exp3: sqrt(ln K / (variance K T + D_T)), at most the limit
    1 / (stability d_max) below which the analysis holds. Arguments as in `exp3_bound`."""
    rounds = _integer("horizon", horizon, 1)
    actions = _integer("num_actions", num_actions, 2)
    weight = _between("variance", variance, 0, _FACTOR)
    clipped = clip_delays(delays, horizon=rounds)
    tuned = math.sqrt(math.log(actions) / (weight * actions * rounds + total_delay(clipped)))
    return min(tuned, _exp3_limit(clipped, stability))


def _exp3_limit(clipped: Integers, stability: float) -> float:
    longest = d_max(clipped)
    factor = _between("stability", stability, 0, _FACTOR)
    return 1 / (factor * longest) if longest else math.inf


def exp3_bound(
    *,
    horizon: SupportsIndex,
    num_actions: SupportsIndex,
    delays: ArrayLike,
    rate: float | None = None,
    variance: float = math.e / 2,
    stability: float = 2 * math.e,
) -> Bound:
    """Expected regret of delayed Exp3 with a fixed rate eta; our reading of Thune et al. (2019).

    ln K / eta + eta variance K T + eta D_T, valid for eta <= 1 / (stability d_max), with
    variance = e/2 and stability = 2 e. At the tuned rate this is
    2 sqrt((e/2 K T + D_T) ln K). `rate=None` takes `exp3_rate`: the tuned rate, lowered to the
    limit where that is smaller; a given rate above the limit is refused.
    """
    rounds = _integer("horizon", horizon, 1)
    actions = _integer("num_actions", num_actions, 2)
    clipped = clip_delays(delays, horizon=rounds)
    weight = _between("variance", variance, 0, _FACTOR)
    limit = _exp3_limit(clipped, stability)
    tuned = exp3_rate(
        horizon=rounds, num_actions=actions, delays=clipped, variance=weight, stability=stability
    )
    eta = tuned if rate is None else _between("rate", rate, 0, math.inf)
    if eta > limit:
        raise ValueError(f"rate must be at most 1 / (stability d_max) = {limit:g}, got {eta:g}")
    terms = {
        "learning": math.log(actions) / eta,
        "actions": eta * weight * actions * rounds,
        "delays": eta * total_delay(clipped),
    }
    return _bound("delayed Exp3", terms, "in expectation")


# --- lower bounds

_REGIMES = ("stochastic", "adversarial")


def lower_bound(
    *,
    horizon: SupportsIndex,
    num_actions: SupportsIndex,
    num_states: SupportsIndex,
    delay: SupportsIndex,
    losses: str = "stochastic",
    mapping: str = "adversarial",
) -> Bound:
    """Lower-bound rates at a fixed delay d; the total is the largest. No constants: orders only.

    - always: "actions" sqrt(K T) (Theorem KTlowerB);
    - adversarial losses, either mapping: "delays" sqrt(d T) (Theorem advstochlowerbound and its
      corollary);
    - stochastic losses, adversarial mapping: "states" sqrt(min(S, d) T) (Theorem STlowerB, which
      lets losses of different states be correlated within a delay) and "blocks"
      min((d + 1) sqrt(S), sqrt((d + 1) T)) (Theorem lb-fixed-delay).

    For stochastic losses and a stochastic mapping only sqrt(K T) is proved. A delay beyond T - 1
    is read as T - 1: nothing arrives in time in either game. An explicit constant is known for
    "states" alone: `STATES_CONSTANT`, `states_lower_bound`.
    """
    rounds = _integer("horizon", horizon, 1)
    actions = _integer("num_actions", num_actions, 2)
    states = _integer("num_states", num_states, 2)
    late = min(_integer("delay", delay, 0), rounds - 1)
    _choice("losses", losses, _REGIMES)
    _choice("mapping", mapping, _REGIMES)
    terms = {"actions": math.sqrt(actions * rounds)}
    if losses == "adversarial":
        terms["delays"] = math.sqrt(late * rounds)
    elif mapping == "adversarial":
        terms["states"] = math.sqrt(min(states, late) * rounds)
        terms["blocks"] = min((late + 1) * math.sqrt(states), math.sqrt((late + 1) * rounds))
    name = f"Lower bound ({mapping} mapping, {losses} losses)"
    return _bound(name, terms, "as a rate without constants", combine="max")


def states_lower_bound(
    *, horizon: SupportsIndex, num_states: SupportsIndex, delay: SupportsIndex
) -> float:
    """Expected regret that no learner beats on both instances of Theorem STlowerB, with constants.

    Blocks of S' = floor(min(S/2, d)) rounds, gap e = 1/4 sqrt(S' / (2 T ln(4/3))) and T cut to
    whole blocks: e T/2 (1 - 2 e sqrt(2 (T/S') ln(4/3))), which is 1/16 sqrt(S' T / (2 ln(4/3)))
    and at least `STATES_CONSTANT` sqrt(S T) when S <= 2 d and blocks fill the horizon. The proof
    needs e <= 1/4, which T >= min(S, d) does not ensure when d is close to T; e is cut there.
    """
    rounds = _integer("horizon", horizon, 1)
    states = _integer("num_states", num_states, 2)
    block = min(states // 2, _integer("delay", delay, 0), rounds - 1)
    if block == 0:
        return 0.0
    blocks = rounds // block
    gap = min(0.25, 0.25 / math.sqrt(2 * blocks * math.log(4 / 3)))
    told_apart = 2 * gap * math.sqrt(2 * blocks * math.log(4 / 3))
    return gap * blocks * block / 2 * (1 - told_apart)


# --- the switch of MetaAdaBIO

_RULES = ("theory", "practical", "footnote", "expected")


def switch_threshold(
    *,
    horizon: SupportsIndex,
    num_actions: SupportsIndex,
    num_states: SupportsIndex,
    delta: float | None = None,
    rule: str = "theory",
) -> float:
    """MetaAdaBIO switches once the sum of end counts exceeds this. With C = 3 ln K + ln(6/delta):

    - "theory": 49 S T ln(8 S T / delta) / C (Algorithm 2; the proof's C_{K,4 delta} is a slip);
    - "practical": S T, the one reading under which Experiment 4 switches and Experiment 5 does not;
    - "footnote": S T / C, the footnote of Experiment 4 to the letter;
    - "expected": 36 S T ln(2 S T) / (8 ln K) (Proposition expectedregret; ln K is missing in
      places of its proof).

    Only "theory" and "footnote" need `delta`.
    """
    rounds = _integer("horizon", horizon, 1)
    actions = _integer("num_actions", num_actions, 2)
    pairs = _integer("num_states", num_states, 1) * rounds
    rule = _choice("rule", rule, _RULES)
    if delta is not None:
        _between("delta", delta, 0, 1)
    if rule == "practical":
        return float(pairs)
    if rule == "expected":
        return 36 * pairs * math.log(2 * pairs) / (8 * math.log(actions))
    level = _between("delta", delta, 0, 1)
    reach = 1.0 if rule == "footnote" else 49 * math.log(8 * pairs / level)
    return reach * pairs / confidence_constant(num_actions=actions, delta=2 * level)


def switch_round(
    *,
    delays: ArrayLike,
    horizon: SupportsIndex | None = None,
    num_actions: SupportsIndex,
    num_states: SupportsIndex,
    delta: float | None = None,
    rule: str = "theory",
    count: str = "end",
) -> int:
    """First round at whose end MetaAdaBIO's rule triggers, horizon + 1 if none. The last round is
    none: there is nothing left to play.

    `count="end"` sums the end counts; "printed" leaves round t out of its own count, as
    Algorithm 2 prints it, which is too small for the analysis of the first phase. Depends on the
    delays alone, neither on actions nor on losses.
    """
    clipped = clip_delays(delays, horizon=horizon)
    outstanding = end_counts(clipped)
    if _choice("count", count, ("end", "printed")) == "printed":
        outstanding = outstanding - (clipped > 0)
    threshold = switch_threshold(
        horizon=len(clipped), num_actions=num_actions, num_states=num_states, delta=delta, rule=rule
    )
    return 1 + int(np.searchsorted(np.cumsum(outstanding), threshold, side="right"))
