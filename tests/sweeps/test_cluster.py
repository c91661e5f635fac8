"""Sweeps on a Dask cluster: workers in threads for quick things, in processes for the real ones."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from dask.utils import key_split
from distributed import Client, LocalCluster
from distributed.scheduler import KilledWorker
from sweeping import BLOCKS, HERE, SMALL, blocks_in, same, small, small_alone

import jaxbio as jb
from jaxbio.cli.main import main
from jaxbio.storage.store import Store
from jaxbio.sweeps import cluster, sending
from jaxbio.sweeps.cluster import Here, Refused, play_task

LOCAL: dict[str, Any] = {
    "n_workers": 1, "threads_per_worker": 2, "processes": False, "protocol": "tcp",
    "host": "127.0.0.1", "dashboard_address": ":0",
}  # fmt: skip


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with LocalCluster(**LOCAL) as local, Client(local) as connected:
        yield connected


class Sent:
    """What a worker gets of the first block of a sweep."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
        found: list[Any] = []
        with monkeypatch.context() as patch:
            place: Any = sys.modules["jaxbio.sweeps.sweep"]
            patch.setattr(place, "play_all", lambda *args: found.extend(args[:2]))
            patch.setattr(place, "label", lambda *args: None)
            small(**options)
        self.blocks, self.job = found
        self.form = sending.form_of(self.blocks[0].games[0])
        self.task = sending.task_of(self.blocks[0], self.job, None)
        self.here = Here(cluster.set_here(), cluster.surroundings())


# --- the same bits


def test_a_cluster_gives_the_dataset_of_one_process(client: Any, tmp_path: Path) -> None:
    same(small(client=client), small_alone())
    same(small(client=client, store=tmp_path), small_alone())
    assert len(blocks_in(tmp_path)) == BLOCKS
    same(small(store=tmp_path), small_alone())  # the store does not say who has played


def test_blocks_of_several_games_and_moments(client: Any) -> None:
    options: dict[str, Any] = {"runs": 3, "width": 8, "keep": "moments", "paired": False}
    options["learners"] = {
        "a": lambda delta: jb.make_learner("dada-exp3", delta=delta),
        "b": jb.make_learner("dada-exp3"),
    }
    options["axes"] = SMALL["axes"] | {"delta": [0.1, 0.2]}
    same(small(client=client, **options), small(**options))


def test_classes_and_functions_that_no_worker_can_import(client: Any) -> None:
    """A function in a static field is another object wherever it is unpacked: one program still."""
    options: dict[str, Any] = {"learners": {"x": _rated(lambda t: 0.5)}}
    known = len(sending._forms)
    same(small(client=client, **options), small(**options))
    assert len(sending._forms) == known + 1


def _rated(rate: Any) -> Any:
    @jb.pytree
    class Rated:
        base: Any
        rate: Any = jb.static()

        def init(self, known: Any) -> Any:
            return self.base.init(known)

        def act(self, state: Any, t: Any, u: Any) -> Any:
            return self.base.act(state, t, u * (2 * self.rate(t)))

        def learn(self, state: Any, t: Any, play: Any, arrivals: Any) -> Any:
            return self.base.learn(state, t, play, arrivals)

    return Rated(jb.UCB1(), rate)


def test_a_class_is_known_to_jax_where_it_arrives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a process that has never seen it."""
    learner = _rated(lambda t: 0.5)
    sent = Sent(monkeypatch, learners={"x": learner})
    (tmp_path / "sent").write_bytes(sending._packed((tuple(sent.form), sent.task)))
    script = (
        "import pickle, sys; from jaxbio.sweeps.sending import Form, unpacked\n"
        "form, task = pickle.loads(open(sys.argv[1], 'rb').read())\n"
        "structure, task = unpacked(Form(*form), task)\n"
        "assert structure.num_leaves == len(task.numbers[0])\n"
        "print(type(task.game(structure).learner).__name__)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "sent")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.stdout.strip() == "Rated", done.stderr[-3000:]


def test_the_dashboard_shows_learners_and_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = Sent(monkeypatch, learners={"DAda-Exp3": jb.make_learner("dada-exp3")})
    name = cluster._name(sent.blocks[3], 3, BLOCKS, sent.job)
    assert name == "play DAda Exp3-block 3 of 12"
    assert key_split(f"{name}-0a1b2c3d") == "play DAda Exp3"


# --- what goes wrong


def test_a_flag_says_where_and_loses_nothing(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = cluster.land

    def flagged(played: Any, backend: str, members: np.ndarray, *rest: Any) -> Any:
        if (members[0] == [1, 8]).all():  # block 3
            played = played._replace(info=played.info | {"not_a_number": np.arange(8) >= 5})
        return real(played, backend, members, *rest)

    monkeypatch.setattr(cluster, "land", flagged)
    for store in (tmp_path, None):
        with pytest.raises(
            RuntimeError, match=r"NaN \(learner 'dada' at delay=2, states=4, run 13"
        ):
            small(store=store, client=client)
    assert len(blocks_in(tmp_path)) == BLOCKS - 1


def test_errors_of_a_learner_arrive(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*args: Any) -> Any:
        raise ZeroDivisionError("here")

    monkeypatch.setattr(cluster, "play_block", failing)
    with pytest.raises(ZeroDivisionError) as caught:
        small(client=client)
    assert "learner 'dada'" in caught.value.__notes__[0]


def test_ctrl_c_cancels_and_keeps(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = Store.save

    def interrupted(self: Store, block: int, arrays: Any) -> None:
        save(self, block, arrays)
        if len(blocks_in(tmp_path)) == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Store, "save", interrupted)
        with pytest.raises(KeyboardInterrupt) as caught:
            small(client=client, store=tmp_path)
    assert "the same call goes on" in caught.value.__notes__[0]
    assert len(blocks_in(tmp_path)) == 3
    left = [state.status for key, state in client.futures.items() if str(key).startswith("play")]
    assert "pending" not in left
    same(small(client=client, store=tmp_path), small_alone())


def test_a_block_that_nobody_waits_for_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = {"key": SimpleNamespace(state="executing")}
    worker = SimpleNamespace(get_current_task=lambda: "key", state=SimpleNamespace(tasks=tasks))
    monkeypatch.setattr("distributed.get_worker", lambda: worker)
    advance = cluster._until_cancelled()
    advance(10)
    tasks["key"].state = "cancelled"
    with pytest.raises(RuntimeError, match="nobody waits"):
        advance(10)


def test_a_block_whose_workers_die_is_sent_again(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dask gives a task up whose workers have died four times; that may be no fault of its own."""
    lost: list[str] = []
    result = type(client.submit(int, 1)).result

    def dying(self: Any, *args: Any) -> Any:
        if "block 3 " in str(self.key) and len(lost) < deaths:
            lost.append(self.key)
            raise KilledWorker(self.key, SimpleNamespace(address="tcp://127.0.0.1:1"), 3)  # type: ignore[arg-type]
        return result(self, *args)

    monkeypatch.setattr("distributed.client.Future.result", dying)
    deaths = 2
    same(small(client=client), small_alone())
    assert len(set(lost)) == 2
    lost, deaths = [], 9
    with pytest.raises(
        RuntimeError, match=r"block 3 was lost with its worker 4 times over.*:1: has"
    ):
        small(client=client)


# --- who may take part


def faked(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Workers, which are other threads of this process, have other surroundings."""
    real = cluster.surroundings

    def told() -> dict[str, Any]:
        there = threading.current_thread() is not threading.main_thread()
        return real() | (changes if there else {})

    monkeypatch.setattr(cluster, "surroundings", told)


def test_a_worker_with_another_cpu_is_refused(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    faked(monkeypatch, cpu_features="avx")
    monkeypatch.setattr(cluster, "play_block", None)
    with pytest.raises(ValueError, match=r"the worker at tcp://127.0.0.1:\d+ is refused") as caught:
        small(client=client)
    assert "the kind of CPU (cpu_features) is avx there and " in str(caught.value)


def test_a_worker_that_joins_late_is_refused_before_it_plays(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    faked(monkeypatch, versions=cluster.surroundings()["versions"] | {"jaxlib": "0.1"})
    monkeypatch.setattr(cluster, "_refuse_others", lambda *args: None)  # it was not there yet
    monkeypatch.setattr(cluster, "play_block", None)
    with pytest.raises(ValueError, match=r"tcp://127.0.0.1:\d+ is refused.*jaxlib is 0.1 there"):
        small(client=client)


def test_other_code_of_the_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module of the same name that is another one on the worker."""
    sent = Sent(monkeypatch)
    refused = play_task(sent.here, sent.form._replace(code="another"), sent.task)
    assert isinstance(refused, Refused)
    assert "other code for one of jaxbio.learners.exp3.DAdaExp3" in refused.sentence()


def test_what_cannot_be_sent_is_named(client: Any) -> None:
    lock = threading.Lock()
    learner = _rated(lambda t: 1.0 if lock else 0.0)
    with pytest.raises(TypeError, match="it cannot be sent to a worker: cannot pickle") as caught:
        small(client=client, learners={"mine": learner})
    assert caught.value.__notes__ == ["learner 'mine'"]


# --- the front door


def test_clients_that_cannot_serve(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="workers=3 says how many blocks are played here"):
        small(client=client, workers=3)
    with Client(client.scheduler.address, set_as_default=False) as closed:
        pass
    with pytest.raises(ValueError, match="client must be connected to a scheduler, but it is clos"):
        small(client=closed)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r'pip install "jaxbio\[cluster\]"'):
        small(client=client)


FILE = """
horizon = 200
runs = 4
[environment]
name = "paper-utility"
delay = "$delay"
[learners.a]
name = "dada-exp3"
[axes]
delay = [3, 5]
"""


def test_the_command_line(client: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "grid.toml").write_text(FILE)
    command = ["sweep", str(tmp_path / "grid.toml"), "--quiet"]
    results = []
    for scheduler in ([], ["--scheduler", client.scheduler.address]):
        assert main([*command, *scheduler]) == 0
        results.append((tmp_path / "grid.nc").read_bytes())
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("address", "code", "says"),
    [
        ("tcp://127.0.0.1:9", 1, "no Dask scheduler answers at 'tcp://127.0.0.1:9'"),
        ("geometric:-1", 2, "a scheduler has an address like tcp://127.0.0.1:8786, but got"),
        ("carrier://pigeon", 2, "a scheduler has an address like tcp://127.0.0.1:8786, but got"),
    ],
)
def test_nobody_answers(
    address: str, code: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(cluster, "PATIENCE", 0.5)
    (tmp_path / "grid.toml").write_text(FILE)
    assert main(["sweep", str(tmp_path / "grid.toml"), "--scheduler", address]) == code
    errors = capsys.readouterr().err
    assert errors.startswith(f"jaxbio: {says}")
    assert errors.count("\n") == 1


# --- processes


def test_a_worker_process_with_another_version_is_refused(tmp_path: Path) -> None:
    fake = tmp_path / "fake.py"
    fake.write_text(
        "from jaxbio.storage import provenance\n"
        "found = provenance.versions()\n"
        "provenance.versions = lambda: found | {'jax': '0.9.9'}\n"
    )
    options: dict[str, Any] = LOCAL | {"n_workers": 0}
    local: Any
    connected: Any
    with LocalCluster(**options) as local, Client(local) as connected:
        command = [sys.executable, "-m", "dask", "worker", local.scheduler_address]
        command += ["--preload", str(fake), "--no-nanny", "--nthreads", "1", "--no-dashboard"]
        command += ["--local-directory", str(tmp_path / "scratch"), "--host", "127.0.0.1"]
        worker = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            connected.wait_for_workers(1, timeout=120)
            (address,) = connected.nthreads()
            with pytest.raises(ValueError, match="is refused") as caught:
                small(client=connected)
        finally:
            worker.kill()
            worker.wait()
    assert f"the worker at {address} is refused" in str(caught.value)
    assert str(caught.value).count(" there and ") == 1
    assert "jax is 0.9.9 there and 0." in str(caught.value)


@pytest.mark.slow
def test_workers_and_clients_that_are_killed() -> None:
    """One round of the script: a class of its own is played, too, that no worker can import."""
    script = HERE.parents[1] / "scripts" / "check_cluster.py"
    command = [sys.executable, str(script), "--rounds", "1", "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.stdout.endswith("the same bits\n"), done.stderr[-3000:]
