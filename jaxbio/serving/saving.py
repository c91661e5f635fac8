"""An agent on disk: numbers and texts, as .npz or .json, nothing that runs when it is read."""

from __future__ import annotations

import base64
import io
import json
import warnings
import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxbio import checks
from jaxbio.engine.code.fingerprint import parts as described
from jaxbio.serving.mind import Mind
from jaxbio.serving.settings import Settings, checked
from jaxbio.serving.tickets import Arrival, Ended, Tickets
from jaxbio.storage import atomic

FORMAT, VERSION = "jaxbio.Agent", 1
SUFFIXES = (".npz", ".json")
ABOUT = frozenset("learner settings decisions rounds open ended arrived".split())
ARRAYS = frozenset(
    "open ended outstanding_tickets outstanding_rounds outstanding arrived_rounds arrived".split()
)
CODE = " sha256 "  # of a description: what follows is a digest of code


class Parts(NamedTuple):
    """about: plain values; arrays: by name."""

    about: dict[str, Any]
    arrays: dict[str, np.ndarray]


# --- files


def file_of(path: Any) -> Path:
    file = checks.path("path", path)
    if file.suffix not in SUFFIXES:
        raise ValueError(f"path must end in {' or '.join(SUFFIXES)}, but got {checks.shown(path)}")
    return file


def write(file: Path, parts: Parts) -> None:
    if file.suffix == ".json":
        content = json.dumps(as_dict(parts), allow_nan=False).encode()
    else:
        stream = io.BytesIO()
        about: Any = np.array(json.dumps(parts.about, allow_nan=False))
        np.savez_compressed(stream, about=about, **parts.arrays)  # type: ignore[arg-type]
        content = stream.getvalue()
    atomic.write(file, content)


def read(file: Path) -> Parts:
    content = atomic.read(file)
    try:
        if file.suffix == ".json":
            return from_dict(json.loads(content))
        with np.load(io.BytesIO(content), allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
        return _complete(json.loads(str(arrays.pop("about", "{}"))), arrays)
    except (ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{file} is not an agent that was saved: {error}") from error


def as_dict(parts: Parts) -> dict[str, Any]:
    """For JSON: arrays become texts with the same bits."""
    arrays = {
        name: {
            "type": array.dtype.str,
            "shape": list(array.shape),
            "base64": base64.b64encode(array.tobytes()).decode(),
        }
        for name, array in parts.arrays.items()
    }
    return {**parts.about, "arrays": arrays}


def from_dict(saved: Mapping[str, Any]) -> Parts:
    about = checks.mapping("saved", saved, "names to values, as to_dict() gives them")
    try:
        arrays = {name: _array(one) for name, one in about.pop("arrays", {}).items()}
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"the arrays of a saved agent cannot be read: {error!r}") from error
    return _complete(about, arrays)


def _array(one: Any) -> np.ndarray:
    content = base64.b64decode(one["base64"], validate=True)
    return np.frombuffer(content, np.dtype(one["type"])).reshape(one["shape"]).copy()


def _complete(about: Any, arrays: dict[str, np.ndarray]) -> Parts:
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise ValueError(f"it does not say that it is one (format {FORMAT!r})")
    if about.get("version") != VERSION:
        raise ValueError(
            f"it has version {about.get('version')!r} of the format, but this jaxbio "
            f"({version('jaxbio')}) reads version {VERSION}"
        )
    missing = (ABOUT - about.keys()) | (ARRAYS - arrays.keys())
    if missing:
        raise ValueError(f"it lacks {', '.join(sorted(missing))}")
    return Parts(about, arrays)


# --- an agent and its parts


def parts_of(mind: Mind, settings: Settings, tickets: Tickets, state: list[np.ndarray]) -> Parts:
    """Everything but the learner itself."""
    ended = tickets.ended
    about = {
        "format": FORMAT,
        "version": VERSION,
        "jaxbio": version("jaxbio"),
        "learner": dict(described("learner", mind.learner)),
        "settings": settings._asdict(),
        "decisions": tickets.decisions,
        "rounds": tickets.rounds,
        "open": [[ticket, loss] for ticket, (_, loss) in tickets.open.items()],
        "ended": None if ended is None else [ended.ticket, ended.state, ended.loss, ended.dropped],
        "arrived": [one.loss for one in tickets.arrived],
    }
    arrays = {
        "open": _rows(mind, [row for row, _ in tickets.open.values()]),
        "ended": _rows(mind, [] if ended is None else [ended.row]),
        "outstanding_tickets": np.array([*tickets.outstanding], np.int64),
        "outstanding_rounds": np.array([t for t, _ in tickets.outstanding.values()], np.int64),
        "outstanding": _rows(mind, [row for _, row in tickets.outstanding.values()]),
        "arrived_rounds": np.array([one.round for one in tickets.arrived], np.int64),
        "arrived": _rows(mind, [one.row for one in tickets.arrived]),
    }
    named = zip(_names(mind), state, strict=True)
    return Parts(about, arrays | {f"state{name}": leaf for name, leaf in named})


def settings_of(parts: Parts) -> Settings:
    found = checks.mapping("settings", parts.about["settings"], "names to values")
    if found.keys() != set(Settings._fields):
        raise ValueError(f"settings must have {', '.join(Settings._fields)}, but got {found}")
    return checked(**found)


def state_of(parts: Parts, mind: Mind) -> list[np.ndarray]:
    """The leaves of the learner's state; a learner that is not the saved one is refused."""
    _compare(parts.about["learner"], dict(described("learner", mind.learner)))
    leaves = []
    for name, type_ in zip(_names(mind), mind.kept, strict=True):
        leaf = parts.arrays.get(f"state{name}")
        if leaf is None or (leaf.shape, leaf.dtype) != (type_.shape, type_.dtype):
            found = "is not there" if leaf is None else f"is {leaf.dtype} {list(leaf.shape)}"
            raise ValueError(
                f"learner must have the state that was saved, but {name or 'its state'} is "
                f"{type_.dtype} {list(type_.shape)}, and in what was saved it {found}"
            )
        leaves.append(leaf)
    return leaves


def tickets_of(parts: Parts, mind: Mind, settings: Settings) -> Tickets:
    about, arrays = parts
    rows = {
        name: [row.tobytes() for row in arrays[name]]
        for name in ("open", "ended", "outstanding", "arrived")
    }
    tickets = Tickets(settings.longest)
    tickets.decisions, tickets.rounds = about["decisions"], about["rounds"]
    opened = zip(about["open"], rows["open"], strict=True)
    tickets.open = {ticket: (row, loss) for (ticket, loss), row in opened}
    if about["ended"] is not None:
        ticket, *rest = about["ended"]
        tickets.ended = Ended(ticket, rows["ended"][0], *rest)
    numbers = (arrays[f"outstanding_{name}"].tolist() for name in ("tickets", "rounds"))
    places = zip(*numbers, rows["outstanding"], strict=True)
    tickets.outstanding = OrderedDict((ticket, (t, row)) for ticket, t, row in places)
    came = zip(arrays["arrived_rounds"].tolist(), rows["arrived"], about["arrived"], strict=True)
    tickets.arrived = [Arrival(*one) for one in came]
    return tickets


def _rows(mind: Mind, rows: list[bytes]) -> np.ndarray:
    """int32 [n, words]"""
    return np.frombuffer(b"".join(rows), np.int32).reshape(len(rows), mind.row.words)


def _names(mind: Mind) -> list[str]:
    """Of the leaves of the state, such as .seen.count."""
    paths = jax.tree_util.tree_flatten_with_path(mind.types.state)[0]
    return [jax.tree_util.keystr(path) for path, _ in paths]


def _compare(saved: dict[str, Any], given: dict[str, Any]) -> None:
    """Raise where values differ; other code is worth a warning."""
    for name in sorted({*saved, *given}):
        was, now = (found.get(name, "not there") for found in (saved, given))
        if was == now:
            continue
        old, new = (str(one).partition(CODE) for one in (was, now))
        if not (old[1] and new[1]) or old[0].rpartition(".")[2] != new[0].rpartition(".")[2]:
            raise ValueError(
                f"learner must be the one that was saved, but {name} is {checks.shown(now)} and "
                f"was {checks.shown(was)}"
            )
        warnings.warn(
            f"the code of {name} ({new[0]}) is not what it was when the agent was saved: it goes "
            "on from the same state, but perhaps otherwise than it would have",
            RuntimeWarning,
            stacklevel=5,
        )
