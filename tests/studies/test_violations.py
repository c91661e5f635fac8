"""When not to trust states: problems by hand, a learner that sees less, tipping points."""

from __future__ import annotations

import dataclasses
import importlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import jaxbio as jb
from jaxbio.cli import main as cli
from jaxbio.core import Array, Arrivals, Known, Play, ignores_empty_lanes, pad_learner
from jaxbio.figures.style import Look
from jaxbio.studies import outputs
from jaxbio.studies.contestants import UNIFORM, looks_at_states
from jaxbio.studies.violations.command import as_text
from jaxbio.studies.violations.figure import risk
from jaxbio.studies.violations.problems import (
    KINDS,
    THETA,
    bypassed,
    clustered,
    drifting,
    flipping,
    guessing,
    ladder,
    mislabelled,
    phase_length,
    turning,
)
from jaxbio.studies.violations.study import (
    COUNTERPARTS,
    blind,
    compared,
    everybody,
    tipping_point,
    violations,
)
from jaxbio.studies.violations.views import Blind, Coarse

PLAIN = jb.Environment(jb.StochasticMapping(ladder()), jb.BernoulliLosses(THETA), jb.FixedDelay(6))
# 0.49 of 0.1, 0.22 of 0.35, 0.13 of 0.65 and 0.16 of 0.9, and so on with ever less of the good.
COSTS = [0.3545, 0.4515, 0.5485, 0.6455]


def costs(env: jb.Environment, t: int) -> list[float]:
    """[K]: what the actions cost on average in round t, as regret counts it."""
    paid = [env.pseudo_loss(jnp.int32(t), jnp.int32(a)) for a in range(env.num_actions)]
    return np.asarray(paid, float).tolist()


# --- the problems


@pytest.fixture(scope="module")
def plain_world() -> dict[str, np.ndarray]:
    return jb.sample_world(PLAIN, 3, 2, 40)


@pytest.mark.parametrize("kind", KINDS)
def test_at_strength_0_all_are_the_same_problem(
    kind: str, plain_world: dict[str, np.ndarray]
) -> None:
    """To the bit: the same states are seen and the same losses paid in the same run."""
    env, each = KINDS[kind].build(0, 6, 40), KINDS[kind].each
    for t in (1, 16, 17, 40):
        assert costs(env, t) == pytest.approx(COSTS)
    world = jb.sample_world(env, 3, 2, 40)
    np.testing.assert_array_equal(world["states"] // each, plain_world["states"])
    paid, expected = (
        np.take_along_axis(one["losses"], one["states"], axis=1) for one in (world, plain_world)
    )
    np.testing.assert_array_equal(paid, expected)
    assert guessing(100) == pytest.approx(100 * (np.mean(COSTS) - COSTS[0]))


def test_what_states_cost_is_reversed_after_two_fifths_of_the_rounds() -> None:
    """All of the way, or half of it."""
    assert costs(turning(1, 6, 40), 16) == pytest.approx(COSTS)
    assert costs(turning(1, 6, 40), 17) == pytest.approx(COSTS[::-1])
    assert costs(turning(0.5, 6, 40), 40) == pytest.approx([0.5] * 4)
    losses = jb.sample_world(turning(1, 6, 8000), 0, 0, 8000)["losses"]
    assert set(np.unique(losses)) == {0, 1}
    # Means of 3,200 and of 4,800 coins: 0.04 is more than four standard errors of either.
    np.testing.assert_allclose(losses[:3200].mean(0), THETA, atol=0.04)
    np.testing.assert_allclose(losses[3200:].mean(0), THETA[::-1], atol=0.04)


def test_losses_of_a_block_are_alike() -> None:
    """At full strength they are one coin, every state and block has its own, and the mean stays.

    1,000 blocks: a correlation of independent coins has a standard deviation of 0.03, a mean of
    them one of 0.016. At half strength two losses of a block are the same coin with probability
    1/4, which is their correlation; so much as 0.1 from it is more than three standard deviations.
    """
    whole, half = (
        jb.sample_world(clustered(v, 9, 10_000), 0, 0, 10_000)["losses"].reshape(1000, 10, 4)
        for v in (1, 0.5)
    )
    assert (whole == whole[:, :1]).all()
    coins = whole[:, 0]
    np.testing.assert_allclose(coins.mean(0), THETA, atol=0.08)
    apart = correlation(coins[1:, 1], coins[:-1, 1]), correlation(coins[:, 1], coins[:, 2])
    assert np.abs(apart).max() < 0.15
    together = [correlation(half[:, i, 2], half[:, i + 1, 2]) for i in range(9)]
    assert np.mean(together) == pytest.approx(0.25, abs=0.1)


def correlation(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.corrcoef(one, other)[0, 1])


def test_things_change_faster_than_the_delay() -> None:
    """The mapping: the next action is the best one, the last one the worst. Or what states cost."""
    assert [phase_length(v, 6, 40) for v in (0, 0.5, 1)] == [40, 11, 3]
    for t, phase in ((1, 0), (3, 0), (4, 1), (7, 2), (10, 3), (13, 0)):
        assert costs(drifting(1, 6, 40), t) == pytest.approx(np.roll(COSTS, phase))
        assert costs(flipping(1, 6, 40), t) == pytest.approx(COSTS[:: (-1) ** phase])


def test_a_share_of_the_loss_is_the_actions_own() -> None:
    env = bypassed(1, 6, 40)
    assert costs(env, 1) == pytest.approx([0.6455, 0.3545, 0.4515, 0.5485])
    assert (env.num_actions, env.num_states) == (4, 16)
    half = bypassed(0.5, 6, 40)
    assert costs(half, 1) == pytest.approx([0.5, 0.403, 0.5, 0.597])
    states = jb.sample_world(half, 0, 0, 40)["states"]
    np.testing.assert_array_equal(states % 4, np.broadcast_to(np.arange(4), (40, 4)))


def test_a_share_of_the_states_is_any_state() -> None:
    """Whatever is shown, actions cost the same, and what is hidden has their laws.

    Shares of 4,000 pairs: 0.04 is five standard errors.
    """
    shown = hidden = np.zeros(0)
    for strength, right in ((0.25, 0.8125), (1, 0.25)):
        env = mislabelled(strength, 6, 4000)
        assert costs(env, 1) == pytest.approx(COSTS)
        states = jb.sample_world(env, 0, 0, 4000)["states"][:, 0]
        shown, hidden = states // 4, states % 4
        assert np.mean(shown == hidden) == pytest.approx(right, abs=0.04)
        found = np.bincount(hidden, minlength=4) / 4000
        np.testing.assert_allclose(found, [0.49, 0.22, 0.13, 0.16], atol=0.04)
    law = np.histogram2d(shown, hidden, bins=4)[0] / 4000
    np.testing.assert_allclose(law, np.outer([0.25] * 4, [0.49, 0.22, 0.13, 0.16]), atol=0.04)


# --- a learner that sees less


@pytest.mark.parametrize("label", ["MetaBIO", "NSD-UCRL2", "StateThompson"])
@pytest.mark.parametrize("hiding", [bypassed, mislabelled])
def test_what_it_sees_and_is_told_is_what_it_gets_without_the_hidden_part(
    label: str, hiding: Any
) -> None:
    """The same actions, states and losses in the same run as on the problem without pairs."""
    learner = everybody()[label]
    env, sizes = hiding(0, 6, 400), {"seed": 1, "horizon": 400}
    plain = jb.trajectory(PLAIN, learner, **sizes)
    hidden = jb.trajectory(env, Coarse(learner, 4), **sizes)
    np.testing.assert_array_equal(hidden.action, plain.action)
    np.testing.assert_array_equal(np.asarray(hidden.state) // 4, plain.state)
    np.testing.assert_array_equal(hidden.loss, plain.loss)
    assert len(set(np.asarray(plain.action).tolist())) > 1
    bare = jb.trajectory(env, learner, **sizes)
    assert (np.asarray(bare.action) != np.asarray(plain.action)).any(), "pairs are another problem"


class Heard(NamedTuple):
    """What a spy was told, and the largest state that it was shown at once and late."""

    told: Array
    slots: Array
    now: Array
    late: Array


@jb.pytree
class Spy:
    """Plays all actions in turn."""

    draws = 3
    ignores_empty_lanes = True

    def init(self, known: Known) -> Heard:
        zero = jnp.int32(0)
        return Heard(jnp.asarray(known.num_states), jnp.int32(known.state_slots), zero, zero)

    def act(self, state: Heard, t: Array, u: Array) -> tuple[Array, None]:
        assert u.shape == (3,)
        return t % 4, None

    def learn(self, state: Heard, t: Array, play: Play, arrivals: Arrivals) -> tuple[Heard, None]:
        late = jnp.max(jnp.where(arrivals.due, arrivals.play.state, 0))
        now, late = jnp.maximum(state.now, play.state), jnp.maximum(state.late, late)
        return state._replace(now=now, late=late), None

    def facts(self, state: Heard) -> dict[str, Any]:
        return state._asdict()

    def check(self, env: Any) -> None:
        assert env.num_states == 16


def test_a_spy_sees_states_without_what_they_hide() -> None:
    env = bypassed(0.5, 6, 60)
    for slots in (16, 22):
        info = jb.simulate(
            env.padded(slots), Coarse(Spy(), 4), horizon=60, runs=2, progress=False
        ).info
        heard = {name: info[name].tolist() for name in Heard._fields}
        shown = -(-slots // 4)
        assert heard == {"told": [4, 4], "slots": [shown] * 2, "now": [3, 3], "late": [3, 3]}
    assert ignores_empty_lanes(Coarse(Spy(), 4))
    assert looks_at_states(Coarse(jb.StateThompson(), 4), env)
    assert not looks_at_states(Coarse(jb.UCB1(), 4), env)


@pytest.mark.parametrize("label", ["MetaBIO", "StateThompson"])
def test_the_blind_see_their_actions_only(label: str) -> None:
    """They play as they would where an action shows its own state, whatever states there are."""
    learner, sizes = everybody()[label], {"seed": 1, "horizon": 400}
    told = dataclasses.replace(PLAIN, mapping=jb.StochasticMapping(np.eye(4)))
    alone, twin = (
        jb.trajectory(told, learner, **sizes),
        jb.trajectory(told, Blind(learner), **sizes),
    )
    np.testing.assert_array_equal(alone.action, twin.action)
    assert looks_at_states(learner, PLAIN)
    assert not looks_at_states(Blind(learner), PLAIN)


def test_a_blind_spy_is_told_of_as_many_states_as_actions() -> None:
    env = bypassed(0.5, 6, 60)
    info = jb.simulate(env, Blind(Spy()), horizon=60, runs=1, progress=False).info
    assert {name: info[name].tolist() for name in Heard._fields} == {
        "told": [4], "slots": [4], "now": [3], "late": [3]
    }  # fmt: skip
    padded: Any = pad_learner(Blind(jb.KnownLosses(jb.UCB1(), THETA)), 22)
    assert len(padded.base.theta) == 4


def test_arrays_over_states_are_as_long_as_what_is_seen() -> None:
    padded: Any = pad_learner(Coarse(jb.KnownLosses(jb.UCB1(), THETA), 4), 22)
    assert padded.base.theta.tolist() == [*THETA, 0, 0]
    with pytest.raises(ValueError, match="each must divide the number of states, but 3 of 16"):
        jb.simulate(bypassed(0, 6, 9), Coarse(jb.UCB1(), 3), horizon=9, runs=2)
    with pytest.raises(TypeError, match="base must be a learner"):
        Coarse(3, 4)


# --- tipping points and differences, on made-up numbers

V = np.array([0.0, 0.2, 0.6, 1.0])


@pytest.mark.parametrize(
    ("mean", "reach", "expected"),
    [
        ([-3, -1, 3, 4], 0.5, (0.2, 0.3, 0.6)),  # a quarter of the way from 0.2 to 0.6
        ([-3, -1, 3, 4], 2.0, (0.0, 0.3, 0.6)),
        ([-3, -1, 3, 4], 3.5, (np.nan, 0.3, 1.0)),
        ([-3, -1, -2, -4], 0.5, (1.0, np.nan, np.nan)),
        ([-3, -1, 0, 1], 0.5, (0.2, 0.6, 1.0)),  # 0 itself is not worse
        ([2, -1, -1, 3], 0.5, (np.nan, 0.0, 0.0)),  # from the beginning
        ([-3, 1, -3, 1], 0.5, (0.0, 0.15, 0.2)),  # the first time, not the last
        ([0, 0, 0, 0], 0.0, (np.nan, np.nan, np.nan)),  # one that never made use of states
    ],
)
def test_tipping_points(mean: list[float], reach: float, expected: tuple[float, ...]) -> None:
    middle = np.array(mean, float)
    found = tipping_point(V, middle, middle - reach, middle + reach)
    np.testing.assert_allclose(found, expected)


def made_up() -> xr.DataArray:
    """[kind, learner, strength, run]: W has 30 less than W/O in each run, then 20 more, then 5."""
    noise = np.array([0.0, 50.0, -50.0])
    without = np.array([100.0, 100.0, -10.0])[:, None] + noise
    values = np.stack([without + np.array([-30.0, 20.0, 5.0])[:, None], without])
    coords = {"kind": ["bypassed"], "learner": ["W", "W/O"], "strength": [0.0, 0.5, 1.0]}
    return xr.DataArray(values[None], coords, ("kind", "learner", "strength", "run"))


def test_differences_are_shares_of_guessing_and_keep_the_pairing_of_runs() -> None:
    """Runs differ by 50, differences do not: their intervals are points."""
    found = compared(made_up(), {"W": "W/O"}, 200.0).squeeze()
    for name in ("difference", "difference_low", "difference_high"):
        np.testing.assert_allclose(found[name], [-0.15, 0.1, 0.025])
    np.testing.assert_allclose(found.ratio, [0.7, 1.2, np.nan])
    np.testing.assert_allclose(found.tipping, [0, 0.3, 0.5])
    assert found.regret_mean.sel(learner="W").values.tolist() == [70, 120, -5]
    assert str(found.counterpart.values) == "W/O"
    assert found.attrs["guessing"] == 200


# --- played

FEW: dict[str, Any] = {
    "learners": {"StateThompson": jb.StateThompson(), "Thompson sampling": jb.ThompsonSampling()},
    "counterparts": {"StateThompson": "Thompson sampling"},
    "progress": False,
}


@pytest.fixture(scope="module")
def played() -> xr.Dataset:
    kinds = ["turning", "bypassed"]
    return violations(kinds, [0, 1], delay=20, horizon=1500, runs=16, **FEW)


def test_a_cell_is_what_simulate_gives(played: xr.Dataset) -> None:
    sizes: dict[str, Any] = {"horizon": 1500, "runs": 16, "rounds": 1, "progress": False}
    env, learner = turning(1, 20, 1500), jb.StateThompson()
    cell = played.final_regret.sel(kind="turning", learner="StateThompson", strength=1)
    np.testing.assert_array_equal(cell, jb.simulate(env, learner, **sizes).final_regret)


def test_panels_begin_in_the_same_games(played: xr.Dataset) -> None:
    """Which are summed up in another way where means move: up to rounding."""
    turning, bypassed = played.final_regret.sel(strength=0)
    np.testing.assert_allclose(turning, bypassed, rtol=1e-4, atol=1e-2)


def test_states_help_until_they_mislead(played: xr.Dataset) -> None:
    """Far apart: the intervals of both sides are on their side by many standard errors."""
    difference = played.difference.sel(pair="StateThompson")
    assert (difference.sel(strength=0) < -0.03).all()
    assert difference.sel(kind="bypassed", strength=1) > 0.3
    uniform = played.regret_mean.sel(learner=UNIFORM, strength=0)
    np.testing.assert_allclose(uniform, guessing(1500), rtol=0.1)


def test_what_is_finished_is_not_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def play() -> xr.Dataset:
        return violations(["turning"], [0, 1], delay=5, horizon=60, runs=2, store=tmp_path, **FEW)

    first = play()
    assert list(tmp_path.glob("turning/blocks/*"))
    monkeypatch.setattr(importlib.import_module("jaxbio.sweeps.execute"), "play_block", None)
    xr.testing.assert_identical(first, play())


def test_everybody_has_a_counterpart_with_the_same_numbers() -> None:
    known = everybody()
    for label, other in COUNTERPARTS.items():
        with_states, without = known[label], known[other]
        assert looks_at_states(with_states, PLAIN)
        assert not looks_at_states(without, PLAIN)
        base = getattr(with_states, "base", with_states)
        if hasattr(without, "delta"):
            assert float(base.delta) == pytest.approx(float(without.delta))
        if hasattr(base, "scale"):
            assert base.scale == without.scale


def test_everybody_has_a_blind_twin() -> None:
    learners, pairs = blind()
    assert list(pairs) == list(COUNTERPARTS)
    for label, twin in pairs.items():
        assert jax.tree.structure(learners[twin].base) == jax.tree.structure(learners[label])
        assert jax.tree.leaves(learners[twin]) == jax.tree.leaves(learners[label])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"against": "odd"}, "against must be one of 'bandits', 'blind', but got 'odd'"),
        ({"kinds": ["odd"]}, "kinds must be one of 'bypassed', .* but got 'odd'"),
        ({"kinds": "turning"}, "kinds must be a list of names, but got 'turning'"),
        ({"kinds": []}, "kinds must be one or more different names"),
        ({"kinds": ["turning"] * 2}, "kinds must be one or more different names"),
        ({"strengths": [0.1, 1]}, "strengths must be two or more increasing numbers, the first"),
        ({"strengths": [0]}, "strengths must be two or more increasing numbers"),
        ({"strengths": [0, 1.5]}, r"strengths must be in \[0, 1\], but got 1.5"),
        ({"strengths": 1}, "strengths must be a list of numbers, but got 1"),
        ({"delay": 50, "horizon": 50}, r"delay must be in \[0, 49\], but got 50"),
        ({"runs": 1}, "runs must be at least 2, but got 1"),
        ({"learners": [jb.UCB1()]}, "learners must map labels to learners"),
        ({"learners": {"a": 3}}, r"learners\['a'\] must be a learner"),
        ({"counterparts": {"MetaBIO": "odd"}}, "a label in counterparts must be one of"),
        ({"horizon": 10**6}, "make more than 4096 phases within the horizon 1000000"),
        ({"counterparts": {}}, "counterparts must have at least one pair of labels"),
    ],
)
def test_bad_input_is_refused_before_anything_is_played(
    given: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.import_module("jaxbio.sweeps.execute"), "play_block", None)
    with pytest.raises((TypeError, ValueError), match=message):
        violations(**given, progress=False)


# --- drawn and printed


def test_a_panel_for_each_kind(played: xr.Dataset) -> None:
    figure = risk(played, Look())
    assert [axes.get_title(loc="left") for axes in figure.axes] == [
        KINDS[kind].title for kind in ("turning", "bypassed")
    ]
    for axes, kind in zip(figure.axes, played.kind.values, strict=True):
        heights = [np.asarray(line.get_ydata(), float) for line in axes.lines]
        expected = 100 * played.difference.sel(kind=kind, pair="StateThompson").values
        assert any(np.allclose(height, expected) for height in heights)
        assert any(np.array_equal(height, [0, 0]) for height in heights)
        assert axes.get_xlabel() == KINDS[str(kind)].strength


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study = importlib.import_module("jaxbio.studies.violations.study")
    monkeypatch.setattr(study, "everybody", lambda: FEW["learners"])
    monkeypatch.setattr(study, "COUNTERPARTS", FEW["counterparts"])
    monkeypatch.setattr(cli, "_keep_programs", lambda: None)
    monkeypatch.setattr(outputs, "number_of_workers", lambda: 1)
    monkeypatch.chdir(tmp_path)
    words = ["violations", "--kinds", "drifting", "--strengths", "0", "0.5", "1", "--delay", "5",
             "--horizon", "90", "--runs", "3", "--quiet"]  # fmt: skip
    assert cli.main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {Path(file).suffix for file in found["files"]} == {".nc", ".png", ".pdf"}
    data = xr.load_dataset(found["files"][0])
    row = found["pairs"]["drifting"]["StateThompson"]
    assert row["counterpart"] == "Thompson sampling"
    own = data.sel(kind="drifting", pair="StateThompson")
    assert row["differences"]["0.5"][0] == pytest.approx(float(own.difference.sel(strength=0.5)))
    assert set(found["regret"]["drifting"]) == {*FEW["learners"], UNIFORM}
    found["pairs"]["drifting"]["StateThompson"] |= {
        "surely_better": 0.0, "line": 0.25, "surely_worse": float("nan"),
        "differences": {"0.0": [-0.1, -0.12, -0.08], "1.0": [0.5, 0.4, 0.6]},
    }  # fmt: skip
    (line,) = [one for one in as_text(found).splitlines() if "StateThompson" in one]
    assert line.split() == ["StateThompson", "Thompson", "sampling", "-10.0", "±", "2.0", "+50.0",
                            "±", "10.0", "+50.0,", "1.0", "0.25", "0.00,", "never"]  # fmt: skip
    assert cli.main([*words, "--strengths", "0.5", "1"]) == 2
    assert "strengths must be" in capsys.readouterr().err
