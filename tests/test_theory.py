"""Bounds against numbers worked out by hand, delay facts against their definitions."""

from __future__ import annotations

import ast
import dataclasses
import math
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxbio import theory

LN4 = math.log(4)
EXPERIMENT_1: dict[str, Any] = {"horizon": 10_000, "num_actions": 4, "delays": 50, "delta": 0.1}
EXPERIMENT_4: dict[str, Any] = {"horizon": 10_000, "num_actions": 4, "num_states": 3, "delays": 20}
EXPERIMENT_5: dict[str, Any] = {"horizon": 10_000, "num_actions": 8, "num_states": 14, "delays": 4}
WITH_STATES: dict[str, Any] = {**EXPERIMENT_1, "num_states": 3}
EXPECTED: dict[str, Any] = {k: v for k, v in WITH_STATES.items() if k != "delta"}
LOWER: dict[str, Any] = {"horizon": 100, "num_actions": 4, "num_states": 9, "delay": 3}

tables = st.lists(st.integers(0, 40), min_size=1, max_size=30)


def brute_begin(delays: list[int]) -> list[int]:
    """#{j < t : j + d_j >= t}, for clipped delays."""
    rounds = range(1, len(delays) + 1)
    return [sum(1 for j in rounds if j < t <= j + delays[j - 1]) for t in rounds]


def brute_end(delays: list[int]) -> list[int]:
    """#{j <= t : j + d_j > t}, for clipped delays."""
    rounds = range(1, len(delays) + 1)
    return [sum(1 for j in rounds if j <= t < j + delays[j - 1]) for t in rounds]


def clipped(delays: list[int]) -> list[int]:
    return [min(d, len(delays) - t) for t, d in enumerate(delays, start=1)]


# --- facts about a delay sequence


def test_delay_facts_by_hand():
    delays = [3, 0, 2, 9, 0]  # arrivals at 4, 2, 5, 5 (clipped from 13), 5
    assert theory.clip_delays(delays).tolist() == [3, 0, 2, 1, 0]
    assert theory.begin_counts(delays).tolist() == [0, 1, 1, 2, 2]
    assert theory.end_counts(delays).tolist() == [1, 1, 2, 2, 0]
    assert theory.total_delay(delays) == 6
    assert theory.sigma_max(delays) == 2
    assert theory.d_max(delays) == 3


@given(tables)
def test_counts_equal_their_definitions(delays: list[int]):
    cut = clipped(delays)
    assert theory.clip_delays(delays).tolist() == cut
    assert theory.begin_counts(delays).tolist() == brute_begin(cut)
    assert theory.end_counts(delays).tolist() == brute_end(cut)


@given(tables)
def test_counts_sum_to_the_total_delay(delays: list[int]):
    begin, end = theory.begin_counts(delays), theory.end_counts(delays)
    assert begin.sum() == end.sum() == theory.total_delay(delays) == sum(clipped(delays))
    assert begin[1:].tolist() == end[:-1].tolist()
    assert begin.max() == end.max() == theory.sigma_max(delays) <= theory.d_max(delays)


@given(tables, st.integers(1, 4))
def test_phi_delay_is_the_sum_of_the_largest(delays: list[int], states: int):
    cut = clipped(delays)
    kept = min(2 * states * max(brute_end(cut)), len(cut))
    expected = sum(sorted(cut, reverse=True)[:kept])
    assert theory.phi_delay(delays, num_states=states) == expected


@pytest.mark.parametrize(("delay", "horizon"), [(0, 7), (3, 7), (6, 7), (50, 7), (50, 10_000)])
def test_one_integer_means_every_round(delay: int, horizon: int):
    for fact in (theory.clip_delays, theory.begin_counts, theory.end_counts):
        np.testing.assert_array_equal(fact(delay, horizon=horizon), fact([delay] * horizon))
    cut = min(delay, horizon - 1)
    assert theory.total_delay(delay, horizon=horizon) == horizon * cut - cut * (cut + 1) // 2
    assert theory.sigma_max(delay, horizon=horizon) == cut


def test_fixed_delay_phi_is_two_s_d_squared():
    assert theory.phi_delay(50, num_states=3, horizon=10_000) == 2 * 3 * 50**2


@pytest.mark.parametrize("kind", [np.int8, np.uint64, np.int32, np.float32, tuple])
def test_delays_of_every_integral_kind(kind: Any):
    delays = [1, 100, 0] + [2] * 297
    given_as = tuple(delays) if kind is tuple else np.asarray(delays, dtype=kind)
    counts = theory.end_counts(given_as, horizon=300)
    assert counts.dtype == np.int64
    np.testing.assert_array_equal(counts, brute_end(clipped(delays)))


def test_an_enormous_delay_does_not_overflow():
    assert theory.clip_delays([2**63 - 1, 0, 2**62]).tolist() == [2, 0, 0]


def test_inputs_are_left_alone():
    delays = np.array([9, 9, 9])
    theory.clip_delays(delays)
    assert delays.tolist() == [9, 9, 9]


def test_confidence_constant():
    value = theory.confidence_constant(num_actions=4, delta=0.1)
    assert value == pytest.approx(8.946374826141717, rel=1e-14)  # 3 ln 4 + ln 120
    assert theory.confidence_constant(num_actions=2, delta=6) == pytest.approx(4 * math.log(2))


# --- the result


def test_bound_is_a_frozen_named_sum():
    bound = theory.dada_bound(**EXPERIMENT_1)
    assert list(bound.terms) == ["actions", "delays", "lower_order"]
    assert bound.total == pytest.approx(sum(bound.terms.values()), rel=1e-15)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(bound, "name", "other")  # noqa: B010
    bound.terms["actions"] = 0.0
    assert bound.terms["actions"] > 0
    assert pickle.loads(pickle.dumps(bound)) == bound
    assert hash(bound) == hash(theory.dada_bound(**EXPERIMENT_1))


def test_bound_reads_well():
    assert str(theory.dada_bound(**EXPERIMENT_1)) == (
        "DAda-Exp3 (corrected, realized regret), with probability at least 0.9: "
        "5368.92 = actions 1513.1 + delays 3777.93 + lower_order 77.889"
    )
    assert str(theory.lower_bound(**LOWER)).endswith(
        "20 = max(actions 20, states 17.3205, blocks 12)"
    )


def test_theory_stands_alone():
    tree = ast.parse(Path(theory.__file__).read_text())
    froms = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    roots = {str(name).partition(".")[0] for name in froms | names}
    assert roots - set(sys.stdlib_module_names) == {"numpy"}


def test_public_names_exist():
    assert all(hasattr(theory, name) for name in theory.__all__)


# --- DAda-Exp3: at d = 50, T = 10_000 the total clipped delay is 500_000 - 50 * 51 / 2 = 498_725


def test_corrected_dada_by_hand():
    terms = theory.dada_bound(**EXPERIMENT_1).terms
    assert terms["actions"] == pytest.approx(1513.10175276192, rel=1e-12)
    assert terms["delays"] == pytest.approx(3777.928291471366, rel=1e-12)
    assert terms["lower_order"] == pytest.approx(77.889039112378, rel=1e-12)


def test_anytime_dada_is_the_printed_theorem():
    bound = theory.dada_bound(**EXPERIMENT_1, tuning="anytime")
    assert bound.terms["learning"] == pytest.approx(3102.804932583276, rel=1e-12)
    assert bound.terms["confidence"] == pytest.approx(1117.50831759091, rel=1e-12)
    mass, log = 2 * 4 * 10_000 + 498_725, math.log(2 / 0.1)
    printed = 2 * math.sqrt(3 * mass * LN4) + (math.sqrt(mass / (3 * LN4)) + 50 / 2 + 1) * log
    assert bound.total == pytest.approx(printed, rel=1e-13)


def test_pseudo_regret_shares_delta_in_three():
    terms = theory.dada_bound(**EXPERIMENT_1, regret="pseudo").terms
    assert terms["actions"] == pytest.approx(1555.386044943852, rel=1e-12)
    assert terms["delays"] == pytest.approx(3883.504154712132, rel=1e-12)
    assert terms["lower_order"] == pytest.approx(88.431131923212, rel=1e-12)
    assert terms["regret_gap"] == pytest.approx(286.158856659094, rel=1e-12)


def unoptimised(scale: float, actions: int, log: float) -> float:
    """(3/2 ln K + 1/2 ln(1/d')) / a + 2 a, the factor of sqrt(2 K T + D_T)."""
    return (1.5 * math.log(actions) + 0.5 * log) / scale + 2 * scale


@pytest.mark.parametrize("actions", [2, 4, 8, 64])
@pytest.mark.parametrize("delta", [0.5, 0.1, 1e-4])
def test_leading_factors_and_their_ratios(actions: int, delta: float):
    log = math.log(2 / delta)
    budget = 3 * math.log(actions) + log
    grid = np.geomspace(0.01, 100, 200_001)
    best = min(unoptimised(a, actions, log) for a in grid)
    claimed = 2 * math.sqrt(budget)
    anytime = 2 * math.sqrt(3 * math.log(actions)) + log / math.sqrt(3 * math.log(actions))
    root = math.sqrt(2 * actions * 1000 + theory.total_delay(7, horizon=1000))

    def ratio(tuning: str, reference: float) -> float:
        bound = theory.dada_bound(
            horizon=1000, num_actions=actions, delays=7, delta=delta, tuning=tuning, split=False
        )
        return (bound.terms["learning"] + bound.terms["confidence"]) / root / reference

    assert ratio("corrected", claimed) == pytest.approx(1, rel=1e-12)
    assert ratio("corrected", best) == pytest.approx(1, rel=1e-8)
    assert ratio("anytime", anytime) == pytest.approx(1, rel=1e-12)
    assert ratio("anytime", claimed) >= 1 - 1e-12
    assert ratio("printed", claimed) == pytest.approx(1.25, rel=1e-12)


@pytest.mark.parametrize("tuning", ["corrected", "anytime", "printed"])
@pytest.mark.parametrize("delays", ["fixed", "random"])
def test_bound_covers_the_expression_it_summarises(tuning: str, delays: str):
    """ln K / eta_T + sum eta_t (sigma_t + 2K) + ..., at the rates the learner really uses."""
    actions, delta, horizon = 4, 0.1, 2000
    table = np.random.default_rng(0).integers(0, 80, horizon) if delays == "random" else 40
    begin = theory.begin_counts(table, horizon=horizon)
    log = math.log(2 / delta)
    budget = 3 * LN4 + log
    squares = {"corrected": budget / 4, "anytime": 3 * LN4 / 4, "printed": budget}
    mass = 2 * actions * np.arange(1, horizon + 1) + np.cumsum(begin)
    eta = np.sqrt(squares[tuning] / mass)
    exact = (LN4 + math.log(4 * 2 / delta) / 2) / eta[-1] + np.sum(eta * (begin + 2 * actions))
    exact += (begin.max() + 2) / 2 * log
    bound = theory.dada_bound(
        horizon=horizon, num_actions=actions, delays=table, delta=delta, tuning=tuning, split=False
    )
    assert 0.95 * bound.total < exact <= bound.total


def test_split_is_the_looser_form():
    for tuning in ("corrected", "anytime", "printed"):
        apart = theory.dada_bound(**EXPERIMENT_1, tuning=tuning, split=True)
        together = theory.dada_bound(**EXPERIMENT_1, tuning=tuning, split=False)
        assert together.total < apart.total < math.sqrt(2) * together.total
        assert apart.terms["actions"] ** 2 + apart.terms["delays"] ** 2 == pytest.approx(
            (together.terms["learning"] + together.terms["confidence"]) ** 2
        )


@pytest.mark.parametrize(
    ("bound", "doubling"),
    [(theory.dada_bound, 1), (theory.metabio_bound, 1), (theory.metaadabio_bound, 2)],
)
def test_d_max_replaces_sigma_max(bound: Any, doubling: int):
    delays = [90] + [0] * 99  # one long delay: sigma_max = 1, d_max = 90
    settings = {"horizon": 100, "num_actions": 4, "delays": delays, "delta": 0.1}
    if bound is not theory.dada_bound:
        settings["num_states"] = 3
    log = math.log({theory.dada_bound: 2, theory.metabio_bound: 4}.get(bound, 8) / 0.1)
    short = bound(**settings).terms["lower_order"]
    assert short == pytest.approx(doubling * 1.5 * log)
    assert bound(**settings, lower_order="d_max").terms["lower_order"] == pytest.approx(
        doubling * 46 * log
    )


# --- MetaBIO and MetaAdaBIO


def test_metabio_by_hand():
    terms = theory.metabio_bound(**WITH_STATES).terms
    assert terms["actions"] == pytest.approx(1584.703130554868, rel=1e-12)
    assert terms["states"] == pytest.approx(4536.167237734321, rel=1e-12)
    assert terms["delays"] == pytest.approx(686.19658425862, rel=1e-12)  # D_Phi = 15_000
    assert terms["lower_order"] == pytest.approx(95.910865806938, rel=1e-12)


@pytest.mark.parametrize(("constants", "inside"), [("safe", 80), ("printed", 60)])
def test_metaadabio_by_hand(constants: str, inside: float):
    budget = 3 * LN4 + math.log(inside)
    terms = theory.metaadabio_bound(**WITH_STATES, constants=constants).terms
    assert terms["states_or_delays"] == pytest.approx(3 * math.sqrt(498_725 * budget))
    assert terms["actions"] == pytest.approx(6 * math.sqrt(40_000 * budget))
    assert terms["delays"] == pytest.approx(2 * math.sqrt(15_000 * budget))
    assert terms["lower_order"] == pytest.approx(52 * math.log(80))


def test_metaadabio_is_safe_unless_told_otherwise():
    default = theory.metaadabio_bound(**WITH_STATES)
    assert default == theory.metaadabio_bound(**WITH_STATES, constants="safe")
    assert default.total > theory.metaadabio_bound(**WITH_STATES, constants="printed").total


def test_metaadabio_takes_the_states_when_delays_are_long():
    settings = {**WITH_STATES, "delays": 2000}
    terms = theory.metaadabio_bound(**settings).terms
    assert terms["states_or_delays"] == pytest.approx(21 * math.sqrt(3e4 * math.log(2.4e6)))


@given(
    st.integers(1, 60).flatmap(lambda n: st.lists(st.integers(0, 99), min_size=n, max_size=n)),
    st.integers(2, 9),
    st.integers(2, 9),
    st.floats(1e-6, 0.999),
)
def test_safe_constants_cover_both_phases(
    delays: list[int], actions: int, states: int, delta: float
):
    """Phase one (never more than the threshold outstanding) plus MetaBIO(delta/2) for the rest."""
    horizon = len(delays)
    shared: dict[str, Any] = {"num_actions": actions, "num_states": states}
    last = theory.switch_round(delays=delays, delta=delta, **shared) - 1
    bound = theory.metaadabio_bound(horizon=horizon, delays=delays, delta=delta, **shared).total
    budget = theory.confidence_constant(num_actions=actions, delta=2 * delta)
    seen = theory.end_counts(delays)[:last].sum()
    half = theory.sigma_max(delays) / 2 + 1
    first = 2 * math.sqrt(2 * actions * last * budget) + 2 * math.sqrt(seen * budget)
    first += math.sqrt(2 * last * math.log(12 / delta)) + half * math.log(6 / delta)
    if last == horizon:
        assert first <= bound
        return
    rest = theory.metabio_bound(horizon=horizon, delays=delays, delta=delta / 2, **shared).terms
    actions_after = rest["actions"] * math.sqrt(1 - last / horizon)
    second = actions_after + rest["states"] + rest["delays"] + rest["lower_order"]
    assert first + second <= bound * (1 + 1e-12)


@pytest.mark.parametrize("horizon", [4, 5, 10, 1000])
def test_rounding_up_to_seven_pays_for_the_triggering_round(horizon: int):
    spare = 7 - (4 + 2 * math.sqrt(2))
    assert spare * math.sqrt(2 * horizon * math.log(16 * horizon)) + math.log(8 / 6) > 1


@pytest.mark.parametrize("horizon", [1, 2, 100, 10_000])
@pytest.mark.parametrize(("actions", "delta"), [(2, 0.5), (8, 0.01)])
def test_hindsight_covers_what_its_proof_adds_up(horizon: int, actions: int, delta: float):
    """ln K / eta_T + 3/2 K sum eta + ln(3/delta) / (2 eta_T), and what does not depend on eta. Only
    the sum over rounds is rounded up: sum 1 / sqrt(t) by 2 sqrt(T).
    """
    log = math.log(3 / delta)
    etas = [
        math.sqrt((3 * math.log(actions) + log) / (8 * actions * t)) for t in range(1, horizon + 1)
    ]
    apart = 0.75 * log + math.sqrt(horizon * log / 2)
    exact = (math.log(actions) + log / 2) / etas[-1] + 1.5 * actions * sum(etas) + apart
    bound = theory.hindsight_bound(horizon=horizon, num_actions=actions, delta=delta)
    slack = 1.5 * actions * (etas[0] * 2 * math.sqrt(horizon) - sum(etas))
    assert bound.total == pytest.approx(exact + slack, rel=1e-12)
    assert slack > 0
    assert list(bound.terms) == ["learning", "confidence", "lower_order", "regret_gap"]
    assert bound.terms["lower_order"] + bound.terms["regret_gap"] == pytest.approx(apart)


def test_expected_bounds_by_hand():
    by_states = 6 * math.sqrt(30_000 * math.log(60_000))
    by_delays = math.sqrt(8 * 498_725 * LN4)
    waited = math.sqrt(8 * 15_000 * LN4)
    totals = {
        "tsallis-inf": 800 + by_delays,
        "metabio": 800 + waited + by_states,
        "metaadabio": 800 * math.sqrt(2) + waited + 2 * by_delays,
    }
    for learner, total in totals.items():
        assert theory.expected_bound(**EXPECTED, learner=learner).total == pytest.approx(total)
    long = theory.expected_bound(**{**EXPECTED, "delays": 900})
    assert long.terms["states_or_delays"] == pytest.approx(2 * by_states)


def test_exp3_at_the_tuned_rate():
    settings = {k: v for k, v in EXPERIMENT_1.items() if k != "delta"}
    mass = 4 * 10_000 * math.e / 2 + 498_725
    assert theory.exp3_rate(**settings) == pytest.approx(math.sqrt(LN4 / mass))
    assert theory.exp3_bound(**settings).total == pytest.approx(2 * math.sqrt(mass * LN4))


def test_exp3_rate_stops_at_its_limit():
    settings: dict[str, Any] = {"horizon": 100, "num_actions": 4, "delays": [80] + [0] * 99}
    limit = 1 / (2 * math.e * 80)
    assert theory.exp3_rate(**settings) == pytest.approx(limit)
    expected = LN4 / limit + limit * (200 * math.e + 80)
    assert theory.exp3_bound(**settings).total == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"rate must be at most .* got 0\.01"):
        theory.exp3_bound(**settings, rate=0.01)


# --- lower bounds


@pytest.mark.parametrize(
    ("losses", "mapping", "terms"),
    [
        ("stochastic", "adversarial", {"actions": 20, "states": math.sqrt(300), "blocks": 12}),
        ("stochastic", "stochastic", {"actions": 20}),
        ("adversarial", "stochastic", {"actions": 20, "delays": math.sqrt(300)}),
        ("adversarial", "adversarial", {"actions": 20, "delays": math.sqrt(300)}),
    ],
)
def test_lower_bound_rates(losses: str, mapping: str, terms: dict[str, float]):
    bound = theory.lower_bound(**LOWER, losses=losses, mapping=mapping)
    assert bound.terms == pytest.approx(terms)
    assert bound.total == 20


def test_lower_bound_takes_the_smaller_side_and_the_largest_term():
    settings = {**LOWER, "delay": 63}
    terms = theory.lower_bound(**settings).terms
    assert terms["blocks"] == 80  # sqrt(64 * 100) < 64 * 3
    assert terms["states"] == 30  # min(S, d) = 9
    assert theory.lower_bound(**settings).total == 80


def test_a_delay_past_the_horizon_is_the_last_useful_one():
    far, near = ({**LOWER, "delay": delay} for delay in (5000, 99))
    assert theory.lower_bound(**far) == theory.lower_bound(**near)


def test_states_lower_bound_and_its_printed_constant():
    constant = theory.STATES_CONSTANT
    assert constant == pytest.approx(0.047571, abs=1e-6)
    value = theory.states_lower_bound(horizon=10_000, num_states=8, delay=50)
    assert value == pytest.approx(math.sqrt(4 * 10_000 / (2 * math.log(4 / 3))) / 16)
    assert value >= constant * math.sqrt(8 * 10_000)
    odd = theory.states_lower_bound(horizon=10_000, num_states=3, delay=50)
    assert odd == pytest.approx(constant * math.sqrt(3 * 10_000))  # floor(S/2) = S/3
    assert theory.states_lower_bound(horizon=100, num_states=8, delay=0) == 0
    assert theory.states_lower_bound(horizon=1, num_states=8, delay=5) == 0


def test_states_lower_bound_keeps_the_gap_below_a_quarter():
    value = theory.states_lower_bound(horizon=100, num_states=1000, delay=90)  # one block of 90
    assert value == pytest.approx(90 / 8 * (1 - math.sqrt(2 * math.log(4 / 3)) / 2))
    assert 90 / 16 < value < 90 / 8


@pytest.mark.parametrize("delay", [1, 5, 50, 500])
@pytest.mark.parametrize("states", [2, 3, 14, 200])
def test_explicit_lower_bound_stays_below_the_upper_bounds(states: int, delay: int):
    shared: dict[str, Any] = {"horizon": 2000, "num_states": states}
    floor = theory.states_lower_bound(**shared, delay=delay)
    for learner in ("metaadabio", "metabio", "tsallis-inf"):
        ceiling = theory.expected_bound(**shared, num_actions=2, delays=delay, learner=learner)
        assert 0 < floor < ceiling.total


# --- the switch


def test_switch_thresholds_by_hand():
    shared: dict[str, Any] = {"horizon": 10_000, "num_actions": 4, "num_states": 3}
    budget = 3 * LN4 + math.log(60)
    thresholds = {
        "theory": 49 * 30_000 * math.log(2_400_000) / budget,
        "practical": 30_000,
        "footnote": 30_000 / budget,
        "expected": 36 * 30_000 * math.log(60_000) / (8 * LN4),
    }
    for rule, threshold in thresholds.items():
        value = theory.switch_threshold(**shared, delta=0.1, rule=rule)
        assert value == pytest.approx(threshold), rule
    assert theory.switch_threshold(**shared, rule="practical") == 30_000
    assert theory.switch_threshold(**shared, rule="expected") == thresholds["expected"]


def test_the_expected_rule_is_the_printed_inequality():
    shared: dict[str, Any] = {"horizon": 500, "num_actions": 3, "num_states": 2}
    threshold = theory.switch_threshold(**shared, rule="expected")
    left, right = math.sqrt(8 * threshold * math.log(3)), 6 * math.sqrt(1000 * math.log(2000))
    assert left == pytest.approx(right)


@pytest.mark.parametrize(
    ("settings", "rule", "delta", "expected"),
    [
        (EXPERIMENT_4, "practical", None, 1510),
        (EXPERIMENT_5, "practical", None, 10_001),
        (EXPERIMENT_4, "footnote", 0.5, 236),
        (EXPERIMENT_4, "footnote", 1e-4, 109),
        (EXPERIMENT_5, "footnote", 0.5, 4014),
        (EXPERIMENT_5, "footnote", 0.1, 3389),
        (EXPERIMENT_5, "footnote", 1e-4, 2032),
        (EXPERIMENT_4, "theory", 0.1, 10_001),
        (EXPERIMENT_5, "theory", 0.1, 10_001),
    ],
)
def test_switch_rounds_of_the_experiments(
    settings: dict[str, Any], rule: str, delta: float | None, expected: int
):
    assert theory.switch_round(**settings, rule=rule, delta=delta) == expected


def test_the_switch_needs_strictly_more_than_the_threshold():
    # T = 6 and S = 1, so the threshold is 6, which round 4 reaches and round 5 exceeds.
    shared: dict[str, Any] = {"num_actions": 2, "num_states": 1, "rule": "practical"}
    end = theory.end_counts([1, 2, 2, 2, 0, 0])
    assert np.cumsum(end).tolist() == [1, 2, 4, 6, 7, 7]
    assert theory.switch_round(delays=[1, 2, 2, 2, 0, 0], **shared) == 5
    assert theory.switch_round(delays=[0, 2, 2, 2, 0, 0], **shared) == 7  # it stays at 6


def test_the_printed_count_leaves_the_round_itself_out():
    # d = 20: 0, 1, ..., 18 (sum 171), then 19 a round: 19 t - 190 > 30_000 first at t = 1589.
    assert theory.switch_round(**EXPERIMENT_4, rule="practical", count="printed") == 1589


def test_the_printed_count_subtracts_delayed_rounds_only():
    # T = 8, S = 1; end counts 1 2 3 3 3 2 1 0, printed 0 1 2 3 3 2 1 0.
    delays = [5, 5, 5, 0, 0, 0, 0, 0]
    shared: dict[str, Any] = {"num_actions": 2, "num_states": 1, "rule": "practical"}
    assert theory.switch_round(delays=delays, **shared) == 4
    assert theory.switch_round(delays=delays, **shared, count="printed") == 5


# --- bad input

EVERY = {
    theory.dada_bound: EXPERIMENT_1,
    theory.metabio_bound: WITH_STATES,
    theory.metaadabio_bound: WITH_STATES,
    theory.expected_bound: EXPECTED,
    theory.hindsight_bound: {"horizon": 9, "num_actions": 2, "delta": 0.1},
    theory.exp3_bound: {k: v for k, v in EXPERIMENT_1.items() if k != "delta"},
    theory.exp3_rate: {k: v for k, v in EXPERIMENT_1.items() if k != "delta"},
    theory.lower_bound: LOWER,
    theory.states_lower_bound: {k: v for k, v in LOWER.items() if k != "num_actions"},
    theory.switch_threshold: {"horizon": 9, "num_actions": 2, "num_states": 2, "delta": 0.1},
    theory.switch_round: {**EXPERIMENT_4, "delta": 0.1},
}
BAD = {
    "horizon": [0, -1, 2.0, True, "9"],
    "num_actions": [1, 0, 2.5, math.nan],
    "num_states": [0, -2, 1.5],
    "delay": [-1, 0.5, None],
    "delta": [0, 1, -0.1, 2, math.nan, math.inf, "0.1", [0.1]],
    "delays": [-1, 0.5, math.nan, math.inf, "7", True, None, [], [1, 2, 3]],
    "tuning": ["fast", None, ["corrected"]],
    "regret": ["realised"],
    "lower_order": ["d"],
    "constants": ["loose"],
    "learner": ["ucb1"],
    "losses": ["random"],
    "mapping": ["random"],
    "rule": ["often", 3],
    "count": ["begin"],
    "rate": [0, -1, math.nan],
    "variance": [0, math.nan],
    "stability": [0, -2],
}
OPTIONS = {
    "tuning": [theory.dada_bound],
    "regret": [theory.dada_bound],
    "lower_order": [theory.dada_bound, theory.metabio_bound, theory.metaadabio_bound],
    "constants": [theory.metaadabio_bound],
    "learner": [theory.expected_bound],
    "losses": [theory.lower_bound],
    "mapping": [theory.lower_bound],
    "rule": [theory.switch_threshold, theory.switch_round],
    "count": [theory.switch_round],
    "rate": [theory.exp3_bound],
    "variance": [theory.exp3_bound, theory.exp3_rate],
    "stability": [theory.exp3_bound, theory.exp3_rate],
}
CASES = [
    pytest.param(call, name, value, id=f"{call.__name__}-{name}-{value}")
    for name, values in BAD.items()
    for value in values
    for call, settings in EVERY.items()
    if name in settings or call in OPTIONS.get(name, [])
]


@pytest.mark.parametrize(("call", "name", "value"), CASES)
def test_bad_input_is_named(call: Any, name: str, value: Any):
    call(**EVERY[call])
    with pytest.raises(ValueError, match=rf"^{name} must "):
        call(**{**EVERY[call], name: value})


@pytest.mark.parametrize(
    "call",
    [theory.metabio_bound, theory.metaadabio_bound, theory.expected_bound, theory.lower_bound],
)
def test_the_theorems_need_two_states(call: Any):
    with pytest.raises(ValueError, match="num_states must be an integer >= 2, got 1"):
        call(**{**EVERY[call], "num_states": 1})


@pytest.mark.parametrize(
    ("delays", "horizon", "message"),
    [
        ([1, 2, -3], None, r"delays must be non-negative integers, got -3 in round 3"),
        ([1, math.nan], 2, r"delays must be non-negative integers, got nan in round 2"),
        ([0.5, 1.0], 2, r"got 0.5 in round 1"),
        ([1, 2, 3], 4, r"delays must have one entry per round, 4 \(horizon\), got 3"),
        ([[1, 2], [3, 4]], None, r"flat, non-empty sequence, got shape \(2, 2\)"),
        ([[1, 2], [3]], None, r"delays must be an integer or a flat sequence"),
        ([True, False], None, r"got dtype bool"),
        ([1, None], None, r"got dtype object"),
        (5, None, r"horizon must be given when delays is one integer"),
        (5, 0, r"horizon must be an integer >= 1, got 0"),
    ],
)
def test_bad_delays_are_located(delays: Any, horizon: int | None, message: str):
    with pytest.raises(ValueError, match=message):
        theory.end_counts(delays, horizon=horizon)


@pytest.mark.parametrize("rule", ["theory", "footnote"])
def test_some_rules_need_delta(rule: str):
    with pytest.raises(ValueError, match=r"delta must lie in \(0, 1\), got None"):
        theory.switch_threshold(horizon=9, num_actions=2, num_states=2, rule=rule)


@pytest.mark.parametrize("delta", [0, 12, -1, math.nan])
def test_confidence_constant_refuses(delta: float):
    with pytest.raises(ValueError, match=r"delta must lie in \(0, 12\)"):
        theory.confidence_constant(num_actions=2, delta=delta)


def test_phi_delay_refuses_no_states():
    with pytest.raises(ValueError, match="num_states must be an integer >= 1, got 0"):
        theory.phi_delay([1, 2], num_states=0)
