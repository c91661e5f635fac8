"""Means over many runs against numbers from two independent programs.

One is a prototype in plain Python, older than this package: means of 8 runs, 20
where noted. The other is a compiled kernel with 8,192 runs. A comparison allows z standard errors
of the difference of the two means, where both standard errors come from the spread of the 200 or
more runs played here. With z = 4.5 a comparison of correct programs fails with probability 7e-6,
and the 116 comparisons of this file together with probability below 1e-3. Where only the spread
tells two learners apart it is compared too, by an F test that fails with probability 1e-5 (were
the regrets normal), 4e-5 in all.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from scipy import stats

import jaxbio as jb

sim = importlib.import_module("jaxbio.sweeps.simulate")
pytestmark = pytest.mark.slow

HORIZON = 10_000
RUNS = 200
Z = 4.5


@pytest.fixture(autouse=True)
def _few_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rings of two sizes only, so that different delays share their programs."""
    sizes = {True: (256, 1), False: (1024, 12)}
    monkeypatch.setattr(sim, "ring_sizes", lambda env, *_: sizes[env.delays.constant])


def play(env: jb.Environment, learner: Any, runs: int = RUNS) -> jb.Result:
    sizes: dict[str, Any] = {"horizon": HORIZON, "runs": runs, "rounds": 1}
    return jb.simulate(env, learner, **sizes, seed=11, progress=False)


def agrees(regret: np.ndarray, expected: float, runs: int = 8) -> None:
    """The mean of `regret` is that of `runs` other runs, within the error of both."""
    sd = regret.std(ddof=1)
    error = sd * np.sqrt(1 / len(regret) + 1 / runs) + 0.5  # printed without decimals
    mean = regret.mean()
    assert abs(mean - expected) < Z * error, f"{mean:.1f} (sd {sd:.1f}) against {expected}"


def near(regret: np.ndarray, expected: float) -> None:
    """Within 8 %. For the learner with a window, whose mean is 408 to 410 in 1,024 runs and 4 to
    6 % below those of the prototype, by 3.5 to 4.7 of the standard errors of its 20 runs; why is
    not known. Ours are the oracle's games. The limit is seven standard errors of ours away.
    """
    assert abs(regret.mean() / expected - 1) < 0.08, f"{regret.mean():.1f} against {expected}"


def spreads_like(regret: np.ndarray, expected: float, runs: int = 20) -> None:
    """The standard deviation of `regret` is that of `runs` other runs, printed without decimals."""
    ours, freedom = regret.var(ddof=1), (len(regret) - 1, runs - 1)
    assert ours / (expected + 0.5) ** 2 < stats.f.isf(5e-6, *freedom), f"{ours**0.5}, {expected}"
    assert ours / (expected - 0.5) ** 2 > stats.f.ppf(5e-6, *freedom), f"{ours**0.5}, {expected}"


def agrees_sharply(regret: np.ndarray, expected: float) -> None:
    """The mean of `regret` is that of the kernel, which has a standard error of 0.3."""
    error = np.hypot(regret.std(ddof=1) / np.sqrt(len(regret)), 0.3)
    assert abs(regret.mean() - expected) < Z * error, f"{regret.mean():.2f}, {expected}"
    assert Z * error < 0.015 * expected  # sharp enough to see 1.5 %


# --- Experiments 1 and 2: the columns of both tables
# A Laplace delay of scale 0 is the fixed delay: one program serves all columns of a learner.

DELAYS = (
    jb.LaplaceDelay(50, 0),
    jb.LaplaceDelay(100, 0),
    jb.LaplaceDelay(200, 0),
    jb.LaplaceDelay(50, 25),
)


def stochastic(delays: Any) -> jb.Environment:
    return jb.make_environment("paper-stochastic", delays=delays)


EXPERIMENT_1 = {
    "DAda anytime": (jb.make_learner("dada-exp3", tuning="anytime"), (465, 506, 538, 470)),
    "DAda corrected": (jb.make_learner("dada-exp3"), (426, 474, 515, 431)),
    "DAda printed": (jb.make_learner("dada-exp3", tuning="printed"), (311, 365, 426, 317)),
    "MetaBIO anytime": (jb.make_learner("metabio", tuning="anytime"), (347, 385, 452, 357)),
    "MetaBIO corrected": (jb.make_learner("metabio"), (292, 330, 401, 304)),
    "MetaBIO printed": (jb.make_learner("metabio", tuning="printed"), (227, 232, 283, 245)),
    "UCB1": (jb.make_learner("ucb1"), (254, 247, 262, 251)),
    "NSD-UCRL2": (jb.make_learner("nsd-ucrl2"), (44, 39, 43, 43)),
    "Thompson": (jb.make_learner("thompson"), (44, 59, 65, 58)),
    "Tsallis-INF simple": (jb.make_learner("tsallis-inf"), (495, 528, 551, 491)),
    "Tsallis-INF skipping": (
        jb.make_learner("tsallis-inf", tuning="skipping"),
        (450, 495, 528, 452),
    ),
    "MetaBIO, Tsallis-INF": (jb.make_learner("metabio-tsallis"), (274, 372, 464, 282)),
}
KERNEL_LAPLACE = {"DAda corrected": 436.4, "MetaBIO corrected": 295.7}


@pytest.mark.parametrize("name", EXPERIMENT_1)
def test_experiment_1(name: str) -> None:
    learner, row = EXPERIMENT_1[name]
    for delays, expected in zip(DELAYS, row, strict=True):
        agrees(play(stochastic(delays), learner).final_regret, expected)
    if name in KERNEL_LAPLACE:
        many = play(stochastic(jb.LaplaceDelay(50, 25)), learner, 1024).final_regret
        agrees_sharply(many, KERNEL_LAPLACE[name])


BY_STATES = [  # learner, delay, number, runs behind it (hindsight: another program, in NumPy)
    (jb.HindsightExp3(), 50, 269, 2000),
    (jb.make_learner("metabio-mean"), 50, 273, 32),
    (jb.make_learner("metabio-mean"), 200, 385, 32),
    (jb.StateThompson("exact"), 50, 14, 24),
]


@pytest.mark.parametrize(("learner", "delay", "expected", "runs"), BY_STATES)
def test_experiment_1_by_states(learner: Any, delay: int, expected: float, runs: int) -> None:
    env = jb.make_environment("paper-stochastic", delays=jb.FixedDelay(delay))
    agrees(play(env, learner).final_regret, expected, runs)


WINDOW, WINDOW_SD = "NSD-UCRL2, window", (19, 24, 21, 28)
EXPERIMENT_2 = {  # learner: (runs behind the numbers, numbers), ...
    "DAda": (jb.make_learner("dada-exp3"), (8, (363, 385, 406, 377))),
    "MetaBIO": (
        jb.make_learner("metabio"),
        (8, (295, 310, 343, 322)),
        (20, (312, 326, 356, 320)),
    ),
    "MetaBIO, skipping": (jb.make_learner("metabio-skipping"), (8, (292, 304, 335, 317))),
    "MetaBIO printed": (
        jb.make_learner("metabio", tuning="printed"),
        (20, (304, 296, 303, 312)),
    ),
    "UCB1": (jb.make_learner("ucb1"), (20, (396, 473, 442, 430))),
    "NSD-UCRL2": (jb.make_learner("nsd-ucrl2"), (20, (308, 484, 290, 422))),
    WINDOW: (
        jb.make_learner("nsd-ucrl2", window=500),
        (20, (425, 433, 431, 427)),
    ),
}


@pytest.mark.parametrize("name", EXPERIMENT_2)
def test_experiment_2(name: str) -> None:
    learner, *rows = EXPERIMENT_2[name]
    for column, delays in enumerate(DELAYS):
        env = jb.make_environment("paper-adversarial", delays=delays)
        regret = play(env, learner).final_regret
        if name == WINDOW:
            near(regret, rows[0][1][column])
            spreads_like(
                regret, WINDOW_SD[column]
            )  # without the window the mean is nearly the same
            continue
        for runs, row in rows:
            agrees(regret, row[column], runs)


# --- Experiments 3 and 5


def utility(states: int, delay: int) -> jb.Environment:
    """Experiments 3 and 5 in arrays of one size."""
    env = jb.make_environment("paper-utility", states=states, delays=jb.FixedDelay(delay))
    return env.padded(14)


EXPERIMENT_3 = {  # MetaBIO by the number of states
    "anytime": {4: 860, 8: 1152, 12: 1395},
    "corrected": {4: 721, 6: 857, 8: 971, 10: 1085, 12: 1194},
    "printed": {4: 521, 6: 600, 8: 673, 10: 746, 12: 814},
    "plain mean": {4: 579, 8: 641, 12: 648},
}


def experiment_3(mode: str, learner: Any) -> None:
    for states, expected in EXPERIMENT_3[mode].items():
        agrees(play(utility(states, 100), learner).final_regret, expected)


@pytest.mark.parametrize(("tuning", "expected"), [("anytime", 1387), ("printed", 594)])
def test_experiment_3_other_tunings(tuning: str, expected: int) -> None:
    alone = jb.make_learner("dada-exp3", tuning=tuning)
    agrees(play(utility(4, 100), alone).final_regret, expected)
    experiment_3(tuning, jb.make_learner("metabio", tuning=tuning))


def test_experiment_3_plain_mean() -> None:
    experiment_3("plain mean", jb.make_learner("metabio", estimator="mean"))


def test_experiments_3_and_5() -> None:
    """The gap to DAda-Exp3 closes as states become many; with 14 and d = 4 MetaBIO is worse."""
    dada, metabio = jb.make_learner("dada-exp3"), jb.make_learner("metabio")
    regret = play(utility(4, 100), dada).final_regret
    agrees(regret, 1128)
    agrees(regret, 1127)  # of the row of plain means
    experiment_3("corrected", metabio)
    alone, wrapped = (play(utility(14, 4), learner).final_regret for learner in (dada, metabio))
    agrees(alone, 513)
    agrees(wrapped, 971)
    assert wrapped.mean() > 1.5 * alone.mean()


@pytest.mark.parametrize(
    ("rule", "switch", "expected"), [("practical", HORIZON + 1, 503), ("footnote", 3389, 825)]
)
def test_experiment_5_metaadabio(rule: str, switch: int, expected: int) -> None:
    """By the practical rule it never switches, by that of the footnote in one round, always."""
    result = play(utility(14, 4), jb.make_learner("metaadabio", rule=rule))
    assert (result.info["switch_round"] == switch).all()
    agrees(result.final_regret, expected)


# --- Experiment 4, and the kernel's fixed delay


@pytest.mark.parametrize(("at_switch", "expected"), [("learner", 317), ("all", 297)])
def test_experiment_4_metaadabio_switches(at_switch: str, expected: int) -> None:
    """d = 20: the sum of the outstanding counts passes S T = 30,000 in round 1510, always."""
    learner = jb.make_learner("metaadabio", rule="practical", at_switch=at_switch)
    result = play(stochastic(jb.FixedDelay(20)), learner)
    assert (result.info["switch_round"] == 1510).all()
    agrees(result.final_regret, expected)


@pytest.mark.parametrize(
    ("name", "at_20", "at_50"), [("dada-exp3", 367, 434.7), ("metabio", 278, 295.2)]
)
def test_experiment_4_others_and_many_runs(name: str, at_20: float, at_50: float) -> None:
    learner = jb.make_learner(name)
    agrees(play(stochastic(jb.FixedDelay(20)), learner).final_regret, at_20)
    agrees_sharply(play(stochastic(jb.FixedDelay(50)), learner, 2048).final_regret, at_50)
