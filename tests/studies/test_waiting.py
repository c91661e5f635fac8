"""What waiting longer is worth: windows, numbers, words, the command and its figure."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_log_advice import SHOP, read, trial

import jaxbio as jb
from jaxbio.figures.style import Look
from jaxbio.studies.waiting import study
from jaxbio.studies.waiting.figure import waiting as draw
from jaxbio.studies.waiting.text import sentences

main = importlib.import_module("jaxbio.cli.main").main
LOG = jb.read_log(jb.example_log(4_000, 2), **SHOP)
LEARNERS = {"looks": jb.make_learner("nsd-ucrl2"), "blind": jb.make_learner("ucb1")}


@pytest.fixture(scope="module")
def found() -> jb.Waiting:
    return jb.worth_of_waiting(
        LOG, windows=[5, 100, 900], learners=LEARNERS, horizon=1_000, games=8, progress=False
    )


def test_usual_windows_let_through_what_they_should() -> None:
    """By the law of conversions, of all states together as they occur; of those that are not longer
    than the law knows of.
    """
    fit = jb.fit(LOG)
    windows = study.usual(fit)
    assert windows == sorted(set(windows))
    every = study._in_time(fit, [10**9])[0] @ study._converting(fit)
    assert 0.98 < every <= 1
    shares = study._in_time(fit, windows) @ study._converting(fit) / every
    assert np.all(np.diff(shares) > 0)
    assert np.all(shares >= np.array(study.SHARES)[: len(shares)] - 1e-6)
    before = study._in_time(fit, [one - 1 for one in windows]) @ study._converting(fit) / every
    assert np.all(before < np.array(study.SHARES)[: len(shares)])
    come = LOG.delays_in_rounds()[LOG.seen_in_rounds]
    assert np.mean(come <= windows[2]) == pytest.approx(0.5, abs=0.1)  # not all have come yet


def test_every_game_is_that_of_its_problem(found: jb.Waiting) -> None:
    """One of them, played alone."""
    env = study._drawn(found.fit, 0, 3, found.windows)
    late = jb.WindowedDelay(env.delays, 100, found.fit.absent)
    alone = jb.simulate(
        jb.Environment(env.mapping, env.losses, late), LEARNERS["blind"], horizon=1_000, runs=4,
        rounds=1, seed=jb_stream(), progress=False,
    ).final_regret  # fmt: skip
    assert found.finals["blind"][1, 3] == pytest.approx(alone[3], rel=1e-5)
    assert found.finals["looks"].shape == (3, 8)
    words = np.random.SeedSequence([0, 3]).generate_state(1)
    fine = found.fit.sample(int(words[0] >> 1)).delays.law
    assert (fine.values, fine.num_states) == (None, None)  # one law for all states
    for window in found.windows:  # long delays are put together, but not across a window
        shares = fine.masses()[: window + 1].sum()
        within = np.asarray(env.delays.values) <= window
        np.testing.assert_allclose(env.delays.masses()[:-1] @ within, shares, atol=1e-8)


def jb_stream() -> Any:
    return importlib.import_module("jaxbio.rng").stream_key(0, study.STREAM)


def made_up(finals: dict[str, Any], windows: tuple[int, ...] = (10, 20, 40)) -> jb.Waiting:
    shares = np.linspace(0.5, 1, len(windows))
    return jb.Waiting(
        jb.fit(LOG), windows, 1_000, {name: np.array(own) for name, own in finals.items()},
        np.tile(shares[:, None], 4), shares,
    )  # fmt: skip


NOISE = np.arange(16.0) % 4


def test_the_best_window_and_what_others_cost() -> None:
    one = made_up({"a": [20 + NOISE, 10 + NOISE, 40 - NOISE], "b": [30 + NOISE] * 3})
    assert one.best == ("a", 20)
    assert one.as_good == [20]
    assert one.regret("a", 20).mean == 11.5
    assert one.costs(10) == pytest.approx((10.0, 10.0, 10.0))
    assert one.costs(40).mean == 27.0
    first, *rest = sentences(one)
    assert first.startswith("Wait 20 rounds (about 3.4 hours), with a: it is expected to miss 11.5")
    assert "of 'bought' in 1,000 rounds" in first
    assert rest[0].startswith("Stopping after 10 rounds (about 1.7 hours) costs 10.0")
    assert rest[1].startswith("Waiting 40 rounds")


def test_a_window_at_the_edge_and_windows_that_are_as_good_are_said() -> None:
    one = made_up({"a": [10 + NOISE, 10.2 + NOISE[::-1], 90 + NOISE], "b": [99 + NOISE] * 3})
    said = " ".join(sentences(one))
    assert "Windows of 20 rounds may be as good." in said
    assert "It is the shortest that was tried: a shorter one may be better yet." in said
    assert made_up({"a": [NOISE], "b": [NOISE]}, (7,)).as_good == [7]


def test_a_figure_has_both_panels(found: jb.Waiting) -> None:
    for look in (Look(), Look(narrow=True)):
        picture = draw(found, look)
        left, right = picture.axes
        assert left.get_title(loc="left") == "Missed of 'bought'"
        assert len(left.lines) >= len(LEARNERS)
        assert right.get_ylim() == (0, 102)


def test_a_log_of_outcomes_has_no_window() -> None:
    with pytest.raises(ValueError, match="there is no window to choose in this log"):
        jb.worth_of_waiting(read(trial(300)), progress=False)


def test_the_command_says_it_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    jb.example_log(4_000, 2).to_csv("shop.csv", index=False)
    columns = [word for role, name in SHOP.items() for word in (f"--{role}", name)]
    words = ["log", "window", "shop.csv", *columns, "--learners", "nsd-ucrl2", "ucb1", "--windows",
             "5", "100", "--horizon", "400", "--games", "3", "--quiet"]  # fmt: skip
    assert main([*words, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["window"] in (5, 100)
    assert [one["rounds"] for one in said["windows"]] == [5, 100]
    assert Path(said["figure"]).stat().st_size > 10_000
    again = importlib.import_module("jaxbio.sweeps.execute")
    monkeypatch.setattr(again, "play_block", None)  # finished parts are read
    assert main(words) == 0
    assert "come in time" in capsys.readouterr().out
