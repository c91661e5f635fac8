"""The store of a sweep: whole blocks or none, never those of another sweep, and none lost.

Most sweeps here share one program; killing processes is in tests/sweeps/test_processes.py.
"""

from __future__ import annotations

import errno
import importlib
import io
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
import pytest
from sweeping import BLOCKS, SMALL, blocks_in, same, small, small_alone, utility

import jaxbio as jb
from jaxbio.engine import player
from jaxbio.storage import atomic
from jaxbio.storage.store import Store, checked_path, part
from jaxbio.sweeps.description import describe, whole
from jaxbio.sweeps.grid import make_grid

playing: Any = sys.modules["jaxbio.sweeps.execute"]


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """(block, round that it started from) of every block played."""
    starts: list[tuple[int, int]] = []
    number, play_one, play_block = [0], playing._play_one, playing.play_block

    def watched_one(player: Any, block: Any, job: Any, n: int, *rest: Any) -> Any:
        number[0] = n
        return play_one(player, block, job, n, *rest)

    def watched_block(*args: Any) -> Any:
        resume = args[5]
        starts.append((number[0], resume.last if resume else 0))
        return play_block(*args)

    monkeypatch.setattr(playing, "_play_one", watched_one)
    monkeypatch.setattr(playing, "play_block", watched_block)
    return starts


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with all blocks of `SMALL`. To be copied."""
    store = tmp_path_factory.mktemp("finished") / "deep" / "store"
    same(small(store=store), small_alone())
    return store


@pytest.fixture
def store(finished: Path, tmp_path: Path) -> Path:
    """A finished store to spoil."""
    return Path(shutil.copytree(finished, tmp_path / "store"))


def block(store: Path, number: int) -> Path:
    return store / "blocks" / f"{number:07d}.npz"


# --- going on


def test_a_finished_store_plays_and_compiles_nothing(
    store: Path, played: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = small_alone()
    monkeypatch.setattr(playing, "compile_player", None)
    same(small(store=str(store)), expected)
    assert played == []


def test_only_missing_blocks_are_played(store: Path, played: list[tuple[int, int]]) -> None:
    for number in (1, 4, 11):
        block(store, number).unlink()
    same(small(store=store, workers=1), small_alone())
    assert played == [(1, 0), (4, 0), (11, 0)]
    assert len(blocks_in(store)) == BLOCKS
    assert not any((store / "unfinished").iterdir())


def test_workers_and_checkpoints_are_not_settings(store: Path) -> None:
    same(small(store=store, workers=3, checkpoint=1), small_alone())


def test_who_plays_is_a_setting_and_part_of_the_result(store: Path) -> None:
    """Back-ends agree to rounding only: a store has the blocks of one."""
    assert small_alone().attrs["backend"] == "llvm"
    same(small(store=store, backend="llvm"), small_alone())  # who plays by itself
    with pytest.raises(ValueError, match='backend: was "llvm", now "vmap"'):
        small(store=store, backend="vmap")


@pytest.mark.parametrize("delay", [9, jb.UniformDelay(8, 9)], ids=["fixed", "random"])
def test_a_long_run_of_vmap_goes_on_from_its_middle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delay: Any
) -> None:
    options = LONG | {"axes": {"delay": [delay]}, "backend": "vmap"}
    monkeypatch.setattr(player, "ROUNDS_PER_CALL", 100)
    expected = small(**options)
    assert expected.attrs["backend"] == "vmap"
    interrupted(monkeypatch, 4, store=tmp_path, **options)
    assert [file.name for file in (tmp_path / "unfinished").iterdir()] == ["0000000.npz"]
    same(small(store=tmp_path, **options), expected)


def test_the_order_of_learners_and_axes_is_no_setting(
    tmp_path: Path, played: list[tuple[int, int]]
) -> None:
    """Blocks go by numbers that do not depend on it, and labels stay with what they name."""
    learners = {"b": jb.make_learner("dada-exp3"), "a": jb.make_learner("dada-exp3", delta=0.9)}
    first = small(store=tmp_path, learners=learners)
    assert first["learner"].values.tolist() == ["b", "a"]
    same(first.sel(learner=["b"]).drop_attrs(), small_alone_as("b"))
    played.clear()
    turned = small(
        store=tmp_path,
        learners=dict(reversed(learners.items())),
        axes=dict(reversed(SMALL["axes"].items())),
    )
    assert played == []
    assert turned["regret"].dims == ("learner", "states", "delay", "run", "round")
    same(turned.sel(learner=["b", "a"]).transpose(*first.dims), first)


def small_alone_as(label: str) -> Any:
    """`small_alone` of a learner that is called otherwise."""
    return small_alone().assign_coords(learner=[label]).drop_attrs()


def test_leftovers_of_a_kill_are_harmless_and_go_when_they_are_old(store: Path) -> None:
    """A scratch file of a write that never ended, in every folder; the block is missing."""
    name = block(store, 3).name
    old, new = f".{name}.{'0' * 32}.part", f".{name}.{'1' * 32}.part"
    folders = (store, store / "blocks", store / "unfinished")
    for folder in folders:
        for scratch in (old, new, f".{name}.part"):
            (folder / scratch).write_bytes(b"half of a blo")
        os.utime(folder / old, (0, 0))
        os.utime(folder / f".{name}.part", (0, 0))  # of someone else
    block(store, 3).unlink()
    same(small(store=store), small_alone())
    for folder in folders:
        assert {file.name for file in folder.glob(".*")} == {new, f".{name}.part"}


def test_a_kill_before_the_settings_were_there_is_harmless(tmp_path: Path) -> None:
    (tmp_path / ".settings.json.1.part").write_text("{")
    (tmp_path / "blocks").mkdir()
    same(small(store=tmp_path), small_alone())


def test_a_crash_before_the_renaming_leaves_no_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = os.replace

    def crash(source: Any, target: Any) -> None:
        if Path(target).name == "0000002.npz":
            raise OSError("the machine is gone")
        rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", crash)
        with pytest.raises(OSError, match="the machine is gone"):
            small(store=tmp_path, workers=1)
    assert {"0000000.npz", "0000001.npz"} <= blocks_in(tmp_path)
    assert "0000002.npz" not in blocks_in(tmp_path)
    assert len(list((tmp_path / "blocks").iterdir())) == len(blocks_in(tmp_path))  # no scratch
    same(small(store=tmp_path), small_alone())


def test_names_reach_the_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is safe when its folder is: after the renaming, and of new folders too."""
    synced: list[int] = []
    sync = os.fsync

    def watched(handle: int) -> None:
        synced.append(os.fstat(handle).st_ino)
        sync(handle)

    monkeypatch.setattr(os, "fsync", watched)
    store = Store(tmp_path / "deep" / "store", {})
    made = (tmp_path, tmp_path / "deep", store.path)
    assert {folder.stat().st_ino for folder in made} <= set(synced)
    synced.clear()
    store.save(0, {"x": np.arange(3)})
    assert synced == [block(store.path, 0).stat().st_ino, store.blocks.stat().st_ino]


# --- files that cannot be used


def torn(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def flipped(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def an_array(file: Path) -> None:
    with open(file, "wb") as stream:
        np.save(stream, np.zeros(3))


@pytest.mark.parametrize("spoil", [torn, emptied, flipped, an_array])
def test_a_torn_block_is_named(
    store: Path, spoil: Callable[[Path], None], played: list[tuple[int, int]]
) -> None:
    spoil(block(store, 5))
    block(store, 1).unlink()
    with pytest.raises(ValueError, match=r"blocks/0000005\.npz is torn .*delete it and call again"):
        small(store=store)
    assert played == []
    block(store, 5).unlink()
    same(small(store=store), small_alone())


def test_no_flipped_bit_is_ever_used(tmp_path: Path) -> None:
    store = Store(tmp_path / "store", {"seed": 1})
    arrays = {"regret": np.linspace(0, 1, 12).reshape(3, 4), "info.arrived": np.arange(4)}
    store.save(0, arrays)
    file = tmp_path / "store" / "blocks" / "0000000.npz"
    whole = file.read_bytes()
    used = 0
    for place in range(len(whole)):
        other = bytes([whole[place] ^ (1 << place % 8)])
        file.write_bytes(whole[:place] + other + whole[place + 1 :])
        try:
            found = store.load(0)
        except ValueError:
            continue
        used += 1  # a bit that says nothing: of a date, say
        assert found.keys() == arrays.keys()
        assert all(np.array_equal(found[name], arrays[name]) for name in arrays)
    assert used < len(whole) / 4
    for length in range(0, len(whole), 7):
        file.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="is torn"):
            store.load(0)


def test_an_error_of_the_system_is_not_called_a_torn_file(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Path.read_bytes
    for error in (OSError(5, "Input/output error"), OSError(24, "too many"), MemoryError("none")):

        def fails(file: Path, error: Any = error) -> bytes:
            if file.suffix == ".npz":
                raise error
            return read(file)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_bytes", fails)
            with pytest.raises(type(error), match=str(error.args[-1])) as caught:
                small(store=store)
        assert isinstance(error, MemoryError) or "blocks/0000000.npz'" in str(caught.value)
    same(small(store=store), small_alone())


def test_a_block_that_holds_other_games_is_named(tmp_path: Path) -> None:
    Store(tmp_path, {}, ["one", "two"]).save(1, {"x": np.arange(3)})
    store = Store(tmp_path, {}, ["one", "three"])
    for look in (store.check_blocks, lambda: store.load(1)):
        with pytest.raises(ValueError, match=r"0000001\.npz belongs to another sweep"):
            look()


def test_a_block_of_another_sweep_is_named(store: Path, tmp_path: Path) -> None:
    small(store=tmp_path / "other", seed=1)
    shutil.copy(block(tmp_path / "other", 5), block(store, 5))
    with pytest.raises(ValueError, match=r"0000005\.npz belongs to another sweep: delete it"):
        small(store=store)


def test_another_block_of_the_same_sweep_is_named(store: Path) -> None:
    shutil.copy(block(store, 4), block(store, 5))
    with pytest.raises(ValueError, match=r"0000005\.npz belongs to another sweep: delete it"):
        small(store=store)


def test_files_that_are_no_blocks_are_left_alone(store: Path) -> None:
    shutil.copy(block(store, 4), block(store, 99))
    for name in ("0000004 (copy).npz", "4.npz", "00000004.npz"):
        shutil.copy(block(store, 4), store / "blocks" / name)
    block(store, 4).unlink()
    (store / "notes.txt").write_text("mine")
    same(small(store=store), small_alone())


# --- a store of something else


def refused(store: Path, **options: Any) -> str:
    with pytest.raises(ValueError, match="holds a sweep with other settings") as caught:
        small(store=store, **options)
    return str(caught.value)


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "seed": ({"seed": 7}, "seed: was 0, now 7"),
    "runs": ({"runs": 24}, "runs: was 16, now 24"),
    "keep": ({"keep": "finals"}, 'keep: was "curves", now "finals"'),
    "paired": ({"paired": False}, "paired: was true, now false"),
    "rounds": ({"rounds": 5}, "rounds / 300: was [50, 100, 150, 200, 250, 300], now [60,"),
    "width": ({"width": 16}, "widths: was [8], now [16]"),
    "axis": (
        {"axes": SMALL["axes"] | {"delay": [2, 9, 6]}},
        "axes / delay: was [2, 9, 5], now [2, 9, 6]",
    ),
    "label": ({"learners": {"Dada": jb.make_learner("dada-exp3")}}, "dada: only in the store"),
    "learner's number": (
        {"learners": {"dada": jb.make_learner("dada-exp3", delta=0.2)}},
        "learners / dada / delay=2, states=2 / learner.delta: was 0.1, now 0.2",
    ),
    "environment": (
        {"environment": lambda delay, states: utility(delay + 1, states)},
        "environment.delays.d: was 2, now 3",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_changed_settings_are_refused_and_told(what: str, store: Path) -> None:
    options, message = CHANGES[what]
    assert message in refused(store, **options)
    same(small(store=store), small_alone())  # the store is as it was


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("versions", {"jaxlib": "0.1"}),
        ("format", 3),
        ("python", "3.1"),
        ("sources", "0123"),
        ("precision", "float64"),
        ("backend", "pallas"),
        ("machine", "pdp11"),
        ("cpu_features", "none"),
        ("xla_flags", "--xla_fast"),
    ],
)
def test_other_surroundings_are_refused(store: Path, name: str, value: Any) -> None:
    settings = json.loads((store / "settings.json").read_text())
    settings[name] = settings[name] | value if isinstance(value, dict) else value
    (store / "settings.json").write_text(json.dumps(settings))
    message = refused(store)
    assert f"{name} / jaxlib: was" in message or f"{name}: was {json.dumps(value)}, now" in message
    assert ("The code of jaxbio itself has changed" in message) == (name == "sources")


def test_what_cannot_be_read_is_refused_with_a_store_only(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    schedule = jb.DAdaExp3(scale=lambda t: float(generator.random()))
    with pytest.raises(ValueError, match=r"learner\.scale\.schedule\.generator is still the same"):
        small(learners={"dada": schedule}, store=tmp_path / "never")
    assert not (tmp_path / "never").exists()
    assert jb.plan_sweep(**SMALL | {"learners": {"dada": schedule}}).settings == 6


def test_many_differences_are_cut_short(store: Path) -> None:
    text = refused(store, learners={"dada": jb.make_learner("dada-exp3", delta=0.2, scale=2)})
    assert "and 6 more" in text
    assert "Name another store" in text


def described(learner: Any, **axes: Any) -> Any:
    grid = make_grid(utility(), {"x": learner}, axes, 100)
    return whole(describe(grid.settings))["x"]


def test_what_a_learner_holds_is_part_of_the_settings() -> None:
    """Schedules and large tables too."""

    def scaled(schedule: Any) -> Any:
        return described(jb.DAdaExp3(scale=schedule))

    linear = optax.linear_schedule
    assert scaled(linear(3.0, 0.1, 50)) == scaled(linear(3.0, 0.1, 50))
    assert scaled(linear(3.0, 0.1, 50)) != scaled(linear(3.0, 0.1, 60))
    assert scaled(lambda t: 1.0 / t) != scaled(lambda t: 2.0 / t)
    assert scaled(lambda t: jax.numpy.sin(t)) != scaled(lambda t: jax.numpy.cos(t))


# how a schedule of the user's may come to the number in the module pk.rates
SCHEDULES = {
    "a function": "import pk.rates\nschedule = lambda t: pk.rates.rate(t)",
    "a number": "import pk.rates\nschedule = lambda t: pk.rates.RATE",
    "a submodule": "from pk import rates\nschedule = lambda t: rates.RATE",
    "an import inside": "def schedule(t):\n from pk.rates import rate\n return rate(t)",
    "a module imported inside": "def schedule(t):\n import pk.rates\n return pk.rates.RATE",
    "another name": "def schedule(t):\n import pk.rates as r\n return r.RATE",
    "a relative import": "def schedule(t):\n from .rates import RATE\n return RATE",
    "a string": "import pk.rates\nschedule = lambda t: getattr(pk.rates, 'RATE')",
    "any name": "import pk.rates\nschedule = lambda t: vars(pk.rates)['RA' + 'TE']",
    "a helper of a helper": "from pk.more import inner\nschedule = lambda t: inner(t)",
}
PACKAGE = {
    "__init__": "",
    "rates": "RATE = 1.0\ndef rate(t):\n    return RATE\n",
    "more": "import pk.rates\ndef inner(t):\n    return outer(t)\n"
    "def outer(t):\n    return pk.rates.rate(t)\n",
}


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Writes a package pk of the user's, and gives what a new process finds in it."""
    folder = tmp_path / "project" / "pk"
    folder.mkdir(parents=True)
    monkeypatch.syspath_prepend(folder.parent)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def loaded(schedule: str, rates: str = PACKAGE["rates"]) -> Any:
        forget()
        for name, text in (PACKAGE | {"rates": rates, "own": schedule}).items():
            (folder / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        return importlib.import_module("pk.own").schedule

    def forget() -> None:
        for name in [name for name in sys.modules if name.split(".")[0] == "pk"]:
            del sys.modules[name]

    yield loaded
    forget()


@pytest.mark.parametrize("how", SCHEDULES)
def test_code_is_followed_into_the_packages_of_the_user(how: str, user: Callable[..., Any]) -> None:
    def scaled(rates: str) -> Any:
        return described(jb.DAdaExp3(scale=user(SCHEDULES[how], rates)))

    one, again, two = (scaled(PACKAGE["rates"].replace("1.0", n)) for n in ("1.0", "1.0", "2.0"))
    assert one == again != two
    words = '"""Rates."""\n' + PACKAGE["rates"].replace("    return", '    """One."""\n    return')
    unused = "\ndef unused(t):\n    return t\n"
    assert scaled(words) == one
    if how not in ("a string", "any name"):  # code that may look up anything
        assert scaled(PACKAGE["rates"] + unused) == one


@pytest.mark.parametrize(
    "code",
    [
        "schedule = lambda t: eval('1 / t')",
        "schedule = lambda t: __import__('pk.rates').rates.rate(t)",
        "import importlib\nschedule = lambda t: importlib.import_module('pk.rates').rate(t)",
        "def f(t):\n    exec('x = 1')\n    return t\nschedule = lambda t: f(t)",
    ],
)
def test_code_that_reaches_anything_is_refused(
    code: str, user: Callable[..., Any], tmp_path: Path
) -> None:
    learners = {"x": jb.DAdaExp3(scale=user(code))}
    with pytest.raises(ValueError, match=r"still the same: its code calls .*Name what it uses"):
        small(learners=learners, store=tmp_path / "never")


def test_changed_code_of_the_user_is_never_mixed_in(
    user: Callable[..., Any], tmp_path: Path
) -> None:
    options: dict[str, Any] = {"axes": {"delay": [2], "states": [2]}, "store": tmp_path / "store"}
    schedule = user(SCHEDULES["a function"])
    small(learners={"x": jb.DAdaExp3(scale=schedule)}, **options)
    block(tmp_path / "store", 0).unlink()
    changed = user(SCHEDULES["a function"], PACKAGE["rates"].replace("1.0", "2.0"))
    with pytest.raises(ValueError, match=r"pk\.rates\.rate\.RATE: was 1\.0, now 2\.0"):
        small(learners={"x": jb.DAdaExp3(scale=changed)}, **options)
    assert len(blocks_in(tmp_path / "store")) == 1


def test_points_whose_text_is_the_same_are_described_apart() -> None:
    """Long tables are printed with dots in the middle."""
    tables = [np.full(2000, 3) for _ in range(2)]
    tables[1][1000] = 4
    axis = [jb.TableDelay(table) for table in tables]
    assert str(axis[0]) == str(axis[1])
    grid = make_grid(
        lambda d: jb.make_environment("paper-stochastic", delays=d),
        {"x": jb.UCB1()},
        {"d": axis},
        99,
    )
    first, second = whole(describe(grid.settings))["x"].values()
    assert first["environment.delays.delays"] != second["environment.delays.delays"]


def test_not_a_number_is_equal_to_itself(tmp_path: Path) -> None:
    Store(tmp_path, {"rate": float("nan"), "most": float("inf")})
    Store(tmp_path, {"rate": float("nan"), "most": float("inf")})
    with pytest.raises(ValueError, match="most: was Infinity, now 1"):
        Store(tmp_path, {"rate": float("nan"), "most": 1})


def test_all_that_differs_is_listed_and_nothing_else(tmp_path: Path) -> None:
    Store(tmp_path, {"rate": [float("nan")], "whole": 1, "names": {"a": 1, "b": 2}})
    with pytest.raises(ValueError, match=r"whole: was 1, now 1\.0") as caught:
        Store(tmp_path, {"rate": [float("nan")], "whole": 1.0, "names": {"b": 2, "a": 1}})
    assert str(caught.value).count("was") == 2  # and "that it was made with"


def test_a_folder_of_other_things_is_refused_and_untouched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(
        ValueError, match=r"holds other files \(thesis\.tex\) and no settings\.json"
    ):
        small(store=tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_lost_settings_are_written_again_where_the_blocks_fit(
    store: Path, played: list[tuple[int, int]]
) -> None:
    was = (store / "settings.json").read_bytes()
    (store / "settings.json").unlink()
    with pytest.raises(ValueError, match=r"has lost its settings\.json, and its blocks are not of"):
        small(store=store, seed=1)
    assert not (store / "settings.json").exists()
    same(small(store=store), small_alone())
    assert played == []
    assert (store / "settings.json").read_bytes() == was


def test_unreadable_settings_are_named(store: Path) -> None:
    torn(store / "settings.json")
    with pytest.raises(ValueError, match=r"settings\.json cannot be read .*: name another store"):
        small(store=store)


@pytest.mark.parametrize("text", ["[" * 10**5, '{"a":' * 10**5, "[1]", "null", "{1}", "\xff"])
def test_settings_that_are_none_are_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match=r"settings\.json cannot be read .*: name another store"):
        Store(tmp_path, {"seed": 1})


def test_a_store_must_be_a_folder(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for store in (tmp_path / "store", tmp_path / "store" / "deep" / "er"):
        with pytest.raises(ValueError, match=r"store must be a folder, but .*store is a file"):
            small(store=store)
    with pytest.raises(ValueError, match=r"but .*link is a link to nothing"):
        small(store=tmp_path / "link" / "deep")


class Bytes:
    def __fspath__(self) -> bytes:
        return b"store"


@pytest.mark.parametrize("store", ["a\0b", "x" * 5000, Bytes(), 3, ""])
def test_a_path_that_is_none_is_named(store: Any) -> None:
    for use in (checked_path, lambda store: part(store, "name")):
        with pytest.raises((TypeError, ValueError), match="store must be the path of a folder"):
            use(store)


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a file is written, and while it goes to the disk."""
    store = Store(tmp_path, {})

    class Full(io.FileIO):
        def write(self, *_: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for place, name, broken in ((atomic, "open", Full), (os, "fsync", full)):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, broken, raising=False)
            with pytest.raises(OSError, match=r"No space left .*blocks/0000002\.npz'"):
                store.save(2, {"x": np.arange(3)})
    assert not any(store.blocks.iterdir())


def test_two_processes_may_open_a_new_store_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One has made it, and saved a block, after the other found nothing there."""
    look = Store._refuse_strangers

    def late(self: Store) -> None:
        monkeypatch.setattr(Store, "_refuse_strangers", look)
        Store(tmp_path, {"seed": 1}).save(0, {"x": np.arange(3)})
        look(self)

    monkeypatch.setattr(Store, "_refuse_strangers", late)
    store = Store(tmp_path, {"seed": 1})
    assert store.finished() == {0}
    assert np.array_equal(store.load(0)["x"], np.arange(3))


def test_of_two_different_sweeps_only_one_gets_a_new_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other has written its settings after this one found none."""
    create = atomic.create

    def late(file: Path, content: bytes) -> bool:
        monkeypatch.setattr(atomic, "create", create)
        Store(tmp_path, {"seed": 1})
        return create(file, content)

    monkeypatch.setattr(atomic, "create", late)
    with pytest.raises(ValueError, match="seed: was 1, now 2"):
        Store(tmp_path, {"seed": 2})
    assert json.loads((tmp_path / "settings.json").read_bytes()) == {"seed": 1}


# --- inside a block


class Interrupting:
    """A bar that presses Ctrl-C after some stretches."""

    def __init__(self, stretches: int) -> None:
        self.left = stretches

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def update(self, rounds: int) -> None:
        if rounds:
            self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt


RANDOM = jb.UniformDelay(8, 9)
LONG = {"horizon": 730, "rounds": 5, "runs": 8, "axes": {"delay": [9]}, "checkpoint": 0}


def interrupted(monkeypatch: pytest.MonkeyPatch, stretches: int, **options: Any) -> None:
    """Play until so many stretches of 100 rounds are over."""
    with monkeypatch.context() as patch:
        shown = Interrupting(stretches)
        patch.setattr(playing, "bar", lambda *_, **__: shown)
        with pytest.raises(KeyboardInterrupt) as caught:
            small(workers=1, **options)
    assert "the same call goes on" in caught.value.__notes__[0]


@pytest.mark.parametrize("delay", [9, RANDOM], ids=["fixed", "random"])
def test_a_long_run_goes_on_from_its_middle(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    played: list[tuple[int, int]],
    delay: Any,
) -> None:
    options = LONG | {"axes": {"delay": [delay]}}
    if delay is RANDOM:
        monkeypatch.setattr("jaxbio.sweeps.sharing.sizes_for", lambda *_: (16, 2))
    monkeypatch.setattr(player, "ROUNDS_PER_CALL", 100)
    expected = small(**options)
    played.clear()
    interrupted(monkeypatch, 4, store=tmp_path, **options)
    assert [file.name for file in (tmp_path / "unfinished").iterdir()] == ["0000000.npz"]
    interrupted(monkeypatch, 1, store=tmp_path, **options | {"checkpoint": 1000})
    same(small(store=tmp_path, **options), expected)
    begun = [last for _, last in played]
    assert begun[0] == 0
    assert begun[1:] == [500, 600]  # saved when it was stopped, however rarely else
    assert not any((tmp_path / "unfinished").iterdir())


def test_a_torn_checkpoint_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(player, "ROUNDS_PER_CALL", 100)
    interrupted(monkeypatch, 4, store=tmp_path, **LONG)
    torn(tmp_path / "unfinished" / "0000000.npz")
    with monkeypatch.context() as patch:
        patch.setattr(playing, "compile_player", None)  # found before anything is played
        with pytest.raises(ValueError, match=r"unfinished/0000000\.npz is torn"):
            small(store=tmp_path, **LONG)
    (tmp_path / "unfinished" / "0000000.npz").unlink()
    same(small(store=tmp_path, **LONG), small(**LONG))


def test_a_checkpoint_of_another_program_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(player, "ROUNDS_PER_CALL", 100)
    interrupted(monkeypatch, 4, store=tmp_path, **LONG)
    load = Store.load_progress
    for change in (
        lambda arrays: {name: x for name, x in arrays.items() if name != "state.0"},
        lambda arrays: {name: x for name, x in arrays.items() if name != "curve.loss"},
        lambda arrays: arrays | {"state.1": arrays["state.0"]},
        lambda arrays: arrays | {"state.0": arrays["state.0"].astype(np.int64)},
        lambda arrays: arrays | {"state.0": arrays["state.0"][:, 1:]},
    ):
        with monkeypatch.context() as patch:
            patch.setattr(Store, "load_progress", lambda *args, c=change: c(load(*args)))
            with pytest.raises(
                ValueError, match=r"0000000\.npz is the state of another program \(\d arrays"
            ):
                small(store=tmp_path, **LONG)


def test_checkpoints_are_no_more_frequent_than_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(player, "ROUNDS_PER_CALL", 100)
    saved: list[int] = []
    monkeypatch.setattr(Store, "save_progress", lambda self, number, _: saved.append(number))
    small(store=tmp_path / "often", **LONG)
    assert len(saved) >= 7
    saved.clear()
    small(store=tmp_path / "seldom", **LONG | {"checkpoint": 1000})
    assert saved == []


def test_a_checkpoint_that_another_process_just_removed_is_no_error(tmp_path: Path) -> None:
    store = Store(tmp_path, {})
    assert store.load_progress(3) is None
    store.save_progress(3, {"last": np.array(5)})
    assert store.load_progress(3) == {"last": np.array(5)}
    store.save(3, {"x": np.arange(2)})
    assert store.load_progress(3) is None


def test_a_run_that_needs_more_lanes_is_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a store and checkpoints as without."""
    options = LONG | {"axes": {"delay": [RANDOM]}}
    monkeypatch.setattr(player, "ROUNDS_PER_CALL", 100)
    monkeypatch.setattr(
        "jaxbio.sweeps.sharing.sizes_for", lambda *_: (16, 2)
    )  # enough: 8 or 9 rounds late
    expected = small(**options)
    compiled = player.compile_player
    tried: list[int] = []
    monkeypatch.setattr(
        player,
        "compile_player",
        lambda game, *rest: tried.append(game.lanes) or compiled(game, *rest),
    )
    monkeypatch.setattr("jaxbio.sweeps.sharing.sizes_for", lambda *_: (16, 1))
    same(small(store=tmp_path, **options), expected)
    assert tried == [2]


# --- what shows in flight


def test_a_flag_says_where_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of block 3: the second half of the runs at delay=2, states=4 (see `SMALL`)."""
    play_one = playing._play_one

    def flagged(player: Any, block: Any, job: Any, number: int, *rest: Any) -> Any:
        played = play_one(player, block, job, number, *rest)
        if number == 3:
            info = played.info | {"not_a_number": np.arange(8) >= 5}
            played = played._replace(info=info)
        return played

    with monkeypatch.context() as patch:
        patch.setattr(playing, "_play_one", flagged)
        for store in (tmp_path, None):
            with pytest.raises(RuntimeError) as caught:
                small(store=store, workers=1)
            assert "NaN (learner 'dada' at delay=2, states=4, run 13;" in str(caught.value)
            assert "3 of 8 runs" in str(caught.value)
    assert blocks_in(tmp_path) == {f"{n:07d}.npz" for n in range(BLOCKS) if n != 3}
    same(small(store=tmp_path), small_alone())
