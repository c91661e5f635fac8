"""Blocks as tasks of a Dask cluster: pure functions of what is sent, and the same bits as here.

This process sends blocks, a few ahead of those that are played, and receives what stays of them.
Dask decides who plays what, and sends a block again whose worker is lost.
"""

from __future__ import annotations

import queue
import re
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from jaxbio import checks
from jaxbio.engine.player import compile_player, play_block, stops_of
from jaxbio.storage.provenance import surroundings
from jaxbio.sweeps.landing import Landed, land
from jaxbio.sweeps.plan import Block, Job
from jaxbio.sweeps.sending import Form, OtherCode, form_of, task_of, unpacked
from jaxbio.sweeps.workers import as_set, set_here

MISSING = 'a cluster takes Dask, which is not installed: pip install "jaxbio[cluster]"'
RETRIES = 3  # of a block that fails, or whose workers Dask has given up on
AHEAD = 3  # blocks sent for each thread of the cluster, so that none waits for this process
LEAST = 16  # blocks sent before there are workers
LOOK = 1.0  # seconds between two looks at how many threads there are
PORT = re.compile(r":(-?\d+)$")
PATIENCE = 10.0  # seconds for a scheduler to answer
NAMES = {  # of what `surroundings` tells, for a person
    "sources": "the code of jaxbio (sources)",
    "cpu_features": "the kind of CPU (cpu_features)",
    "python": "Python",
}


# --- the front door


def checked(client: Any, workers: Any = None) -> Any:
    """A client that is connected, or None. workers: the argument of `sweep`."""
    if client is None:
        return None
    distributed = _distributed()
    if not isinstance(client, distributed.Client):
        raise TypeError(f"client must be a distributed.Client, but got {checks.shown(client)}")
    if client.asynchronous:
        raise ValueError("client must not be asynchronous: make it with asynchronous=False")
    if client.status != "running":
        raise ValueError(f"client must be connected to a scheduler, but it is {client.status}")
    if workers is not None:
        raise ValueError(
            f"workers={checks.shown(workers)} says how many blocks are played here: leave it out "
            "with client=, whose cluster plays as many as it has threads"
        )
    return client


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of the scheduler at an address, closed at the end."""
    port = PORT.search(address)
    if port and not 0 < int(port[1]) < 1 << 16:
        raise ValueError(
            f"a scheduler has an address like tcp://127.0.0.1:8786, but got {address!r}: a port is "
            "a number from 1 to 65535"
        )
    try:
        distributed = _distributed()
        client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except OSError as error:
        reason = f"no Dask scheduler answers at {address!r}: {_first(error)}"
        raise ConnectionError(reason) from None
    except ImportError as error:
        raise RuntimeError(str(error)) from error
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"a scheduler has an address like tcp://127.0.0.1:8786, but got {address!r}: "
            f"{_first(error)}"
        ) from None
    with client:
        yield client


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise ImportError(MISSING) from error
    return distributed


def _first(error: BaseException) -> str:
    """The first line of what an error says."""
    return next(iter(str(error).splitlines()), type(error).__name__)


# --- here


def play(
    client: Any, blocks: list[Block], job: Job, backend: str | None, numbers: Sequence[int]
) -> Generator[tuple[int, Landed], None, None]:
    """(number, what stays) of these blocks, as they arrive. Where it is left early, the others are
    cancelled.
    """
    here = Here(set_here(), surroundings())
    _refuse_others(client, here)
    flight = _Flight(client, here, blocks, job, backend)
    left = iter(numbers)
    waiting = len(numbers)
    try:
        while waiting:
            for _, number in zip(range(flight.room()), left, strict=False):
                flight.send(number)
            for number, landed in flight.arrived():
                waiting -= 1
                yield number, landed
    finally:
        flight.cancel()


class _Flight:
    """The blocks that have been sent and have not come back.

    token: part of the names of all tasks of a sweep. again: how often a block was sent again.
    """

    def __init__(
        self, client: Any, here: Here, blocks: list[Block], job: Job, backend: str | None
    ) -> None:
        self.client, self.here, self.blocks, self.job = client, here, blocks, job
        self.backend, self.token = backend, uuid.uuid4().hex[:8]
        self.forms: dict[int, Form] = {}
        self.sent: dict[int, Any] = {}
        self.again: dict[int, int] = {}
        self.done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self.looked, self.most = 0.0, LEAST

    def room(self) -> int:
        """How many more blocks to send now."""
        if time.monotonic() - self.looked > LOOK:
            try:
                threads = sum(self.client.nthreads().values())
            except OSError as error:
                raise _lost(error) from None
            self.looked, self.most = time.monotonic(), max(LEAST, AHEAD * threads)
        return max(0, self.most - len(self.sent))

    def send(self, number: int) -> None:
        from dask import config

        block = self.blocks[number]
        try:
            if block.group not in self.forms:
                self.forms[block.group] = form_of(block.games[0])
            task = task_of(block, self.job, self.backend)
        except TypeError as error:
            error.add_note(f"learner {_labels(block, self.job)!r}")
            raise
        again = f"-{self.again[number]}" if number in self.again else ""
        name = _name(block, number, len(self.blocks), self.job)
        with config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            future = self.client.submit(
                play_task, self.here, self.forms[block.group], task,
                key=f"{name}-{self.token}{again}", retries=RETRIES, pure=False,
            )  # fmt: skip
        self.sent[number] = future
        future.add_done_callback(lambda future: self.done.put((number, future)))

    def arrived(self) -> Iterator[tuple[int, Landed]]:
        """What has come back, after a while."""
        try:
            found = [self.done.get(timeout=LOOK)]
        except queue.Empty:
            return
        while not self.done.empty():
            found.append(self.done.get())
        for number, future in found:
            landed = self._result(number, future)
            del self.sent[number]
            if landed is None:
                self.send(number)
            else:
                yield number, landed

    def _result(self, number: int, future: Any) -> Landed | None:
        """What stays of a block; None where it has to be sent again."""
        distributed = _distributed()
        try:
            found = future.result()
        except distributed.scheduler.KilledWorker as error:
            self.again[number] = self.again.get(number, 0) + 1
            if self.again[number] <= RETRIES:
                return None
            raise RuntimeError(
                f"block {number} was lost with its worker {self.again[number]} times over, the "
                f"last time at {error.last_worker.address}: has it run out of memory (a smaller "
                "width= takes less), or do workers come and go faster than a block is played?"
            ) from None
        except (distributed.client.FutureCancelledError, distributed.comm.CommClosedError) as error:
            raise _lost(error) from None
        except Exception as error:
            error.add_note(f"block {number}, learner {_labels(self.blocks[number], self.job)!r}")
            raise
        if isinstance(found, Refused):
            raise ValueError(found.sentence())
        return found

    def cancel(self) -> None:
        with suppress(Exception):  # the scheduler may be gone
            if self.sent:
                self.client.cancel(list(self.sent.values()))
        self.sent.clear()


def _lost(error: BaseException) -> ConnectionError:
    return ConnectionError(
        f"the scheduler is lost ({_first(error)}): start it again, and with store= the same call "
        "goes on with what is missing"
    )


def _labels(block: Block, job: Job) -> str:
    """Of the learners that play a block."""
    return ", ".join(sorted({job.settings[setting].label for setting in block.members[:, 0]}))


def _name(block: Block, number: int, total: int, job: Job) -> str:
    """As the dashboard shows it. It puts together what is alike up to the first "-"."""
    learner = _labels(block, job).replace("-", " ")
    return f"play {learner}-block {number} of {total}"


# --- who may take part


class Here(NamedTuple):
    """Of the process that sends: how JAX is set in its thread, and what `surroundings` tells."""

    jax: dict[str, Any]
    around: dict[str, Any]


class Refused(NamedTuple):
    """A worker that would not give the same bits. reasons: what differs, in words."""

    address: str
    reasons: list[str]

    def sentence(self) -> str:
        return (
            f"the worker at {self.address} is refused, because its results might differ in their "
            f"last bits: {'; '.join(self.reasons)}"
        )


def differing(here: Here) -> list[str]:
    """What is not the same in this process, in words."""
    with as_set(here.jax):
        mine, theirs = _flat(surroundings()), _flat(here.around)
    return [
        f"{NAMES.get(name, name)} is {mine.get(name)} there and {theirs.get(name)} here"
        for name in sorted(mine.keys() | theirs.keys())
        if mine.get(name) != theirs.get(name)
    ]


def _flat(around: dict[str, Any]) -> dict[str, Any]:
    return {**around["versions"], **{k: v for k, v in around.items() if k != "versions"}}


def _refuse_others(client: Any, here: Here) -> None:
    """Raise where a worker of now would not give the same bits. Those that join later are asked
    before they play.
    """
    answers = client.run(differing, here, on_error="return")
    for address, reasons in answers.items():
        if isinstance(reasons, OSError):  # lost in this moment
            continue
        if isinstance(reasons, BaseException):
            reasons = [f"it cannot run this jaxbio ({type(reasons).__name__}: {_first(reasons)})"]
        if reasons:
            raise ValueError(Refused(address, reasons).sentence())


# --- there


def play_task(here: Here, form: Form, task: bytes) -> Landed | Refused:
    """A block, played in the thread that calls, on the default device."""
    reasons = differing(here)
    if reasons:
        return Refused(getattr(_worker(), "address", "no address"), reasons)
    with as_set(here.jax):
        try:
            structure, block = unpacked(form, task)
        except OtherCode as error:
            return Refused(
                getattr(_worker(), "address", "no address"),
                [f"it imports other code for one of {error}"],
            )
        with _compiling:  # once, though several threads ask for it
            game = structure.unflatten(block.numbers[0])
            player = compile_player(game, block.places is not None, block.backend)
        game, stops = block.game(structure), stops_of(block.points)
        played = play_block(player, game, block.keys, stops, _until_cancelled())
        return land(played, player.name, block.members, block.points, block.keep)


_compiling = threading.Lock()


def _worker() -> Any:
    """Of this thread; None outside of a task."""
    from distributed import get_worker

    with suppress(ValueError):
        return get_worker()


def _until_cancelled() -> Callable[[int], None]:
    """Called between two stretches: ends a task that nobody waits for any more."""
    worker = _worker()
    if worker is None:
        return lambda rounds: None
    key = worker.get_current_task()

    def advance(rounds: int) -> None:
        task = worker.state.tasks.get(key)
        if task is None or task.state == "cancelled":
            raise RuntimeError("nobody waits for this block any more")

    return advance
