"""What `simulate` and `sweep` do on a GPU, without one: the back-end that they choose, the check on
first use, and how many runs share a block.

A GPU is pretended: the platform is said to be one, and its kernel is interpreted.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from helpers import forget_programs

import jaxbio as jb
from jaxbio.engine import widths
from jaxbio.engine.backends import choice, pallas

ENV = jb.make_environment("paper-stochastic", delays=jb.FixedDelay(9))
SIZE: dict[str, Any] = {"horizon": 64, "runs": 64, "rounds": 3, "progress": False}
H100 = {"multiprocessors": 132, "threads": 1024}  # of each, with 64 registers a thread


class Interpreted(pallas.Kernel):
    """The kernel as a GPU would choose it."""

    def __init__(self, program: Any, interpret: bool = False) -> None:
        super().__init__(program, interpret=True)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """From here on the device is said to be a GPU."""
    forget_programs(monkeypatch)
    monkeypatch.setattr(choice, "platform", lambda: "gpu")
    monkeypatch.setattr(widths, "platform", lambda: "gpu")
    monkeypatch.setattr(pallas, "Kernel", Interpreted)
    return monkeypatch


def played(backend: str | None = None) -> tuple[jb.Result, list[str]]:
    """A small game, and what jaxbio warned of."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = jb.simulate(ENV, jb.make_learner("ucb1"), backend=backend, **SIZE)
    return result, [str(one.message) for one in said if "jaxbio" in str(one.message)]


def assert_right(result: jb.Result) -> None:
    expected, _ = played("llvm")
    np.testing.assert_allclose(result.regret, expected.regret, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(result.loss, expected.loss)


def test_a_kernel_that_agrees_plays(gpu: pytest.MonkeyPatch) -> None:
    result, said = played()
    assert result.backend == "pallas"
    assert said == []
    assert_right(result)


def test_a_kernel_that_disagrees_does_not_play(gpu: pytest.MonkeyPatch) -> None:
    """One line says so, once, and the results are right."""
    play = pallas.Kernel.play

    def wrong(self: Any, numbers: Any, keys: Any, *rest: Any) -> Any:
        return play(self, numbers, np.roll(keys, 1, axis=1), *rest)

    gpu.setattr(Interpreted, "play", wrong)
    result, said = played()
    assert result.backend == "jnp"
    (line,) = said
    assert line.startswith(choice.NO_KERNEL)
    assert " of 64 runs of the kernel differ from those of plain JAX" in line
    assert "\n" not in line
    assert_right(result)
    again, said = played()
    assert (again.backend, said) == ("jnp", [])


def test_a_kernel_that_fails_does_not_play(gpu: pytest.MonkeyPatch) -> None:
    def fails(self: Any, *args: Any) -> Any:
        raise RuntimeError("ptxas: no\nand a page of reasons")

    gpu.setattr(Interpreted, "play", fails)
    result, said = played()
    assert result.backend == "jnp"
    reason = "the kernel cannot be compiled or run here (RuntimeError: ptxas: no)"
    assert said == [f"{choice.NO_KERNEL} ({reason})"]
    assert_right(result)


def test_games_of_their_own_are_checked_too(gpu: pytest.MonkeyPatch) -> None:
    """A sweep whose settings share blocks: each run brings its own numbers."""
    options: Any = {"horizon": 64, "runs": 2, "rounds": 3, "progress": False}
    axes = {"delay": [3, 9]}

    def swept(**more: Any) -> Any:
        return jb.sweep(
            lambda delay: jb.make_environment("paper-stochastic", delays=jb.FixedDelay(delay)),
            {"a": jb.make_learner("ucb1")}, axes, **options, **more,
        )  # fmt: skip

    mine, theirs = swept(), swept(backend="llvm")
    assert mine.attrs["backend"] == "pallas"
    np.testing.assert_allclose(mine["regret"], theirs["regret"], rtol=1e-5, atol=1e-5)


# --- how many runs share a block


def test_a_block_fills_a_gpu(gpu: pytest.MonkeyPatch) -> None:
    """At Laplace(50, 25) too, where a run carries some 20 kB."""
    runs = widths.widest(10_000, 20_000, None)
    assert runs * 20_000 <= widths.DEVICE_BYTES
    assert runs >= 0.9 * H100["multiprocessors"] * H100["threads"]
    assert runs % pallas.BLOCK == 0


def test_runs_that_carry_much_still_fit(gpu: pytest.MonkeyPatch) -> None:
    assert widths.widest(10_000, 1 << 20, None) == 1 << 12


@pytest.mark.parametrize("devices", [1, 3, 8])
def test_every_gpu_gets_equally_many_blocks(gpu: pytest.MonkeyPatch, devices: int) -> None:
    most = widths.widest(10_000, 20_000, None)
    for runs in (4_096, 1_000_000):
        width = widths.shared_out(runs, most, devices)
        assert width <= most
        assert -(-runs // width) % devices == 0


def blocks_of(settings: int, runs: int, tables: bool = False) -> int:
    """Into how many blocks a sweep over so many delays is cut. tables: losses are given."""
    paper = jb.make_environment("paper-stochastic", delays=jb.FixedDelay(9))
    losses = jb.TableLosses(np.zeros((10_000, paper.num_states))) if tables else paper.losses

    def env(delay: int) -> jb.Environment:
        return jb.Environment(paper.mapping, losses, jb.FixedDelay(delay))

    axes, learners = {"delay": list(range(1, settings + 1))}, {"a": jb.make_learner("ucb1")}
    options: Any = {"horizon": 10_000, "runs": runs, "rounds": 1, "progress": False}
    return jb.plan_sweep(env, learners, axes, **options).blocks


def test_settings_share_blocks_until_they_fill_a_gpu(gpu: pytest.MonkeyPatch) -> None:
    assert blocks_of(settings=4, runs=64) == 1
    assert blocks_of(settings=4, runs=1_000) == 1
    assert blocks_of(settings=4, runs=32_768) == 2
    assert blocks_of(settings=4, runs=70_000) == 4  # each fills it


def test_settings_with_tables_have_blocks_of_their_own(gpu: pytest.MonkeyPatch) -> None:
    """Side by side every run would have a copy of its table, and there would be room for few."""
    assert blocks_of(settings=2, runs=10_000, tables=True) == 2


def test_on_a_cpu_settings_have_blocks_of_their_own() -> None:
    assert blocks_of(settings=4, runs=64) == 4
