"""A sweep on a Dask cluster that is treated badly, compared with the same sweep alone.

    python scripts/check_cluster.py --rounds 10

In each round a scheduler and three workers are started as processes of their own, on the loopback
interface, and a client plays a sweep with a store. At random moments workers are killed (kill -9)
and new ones join; the client is killed and started again until it is through. The result must have
the bits of the sweep alone. One line is printed for each round.
"""

from __future__ import annotations

import argparse
import pickle
import random
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import jaxbio as jb

WORKERS = 3
PATIENCE = 600.0  # seconds for a round
BLOCKS = 36


@jb.pytree
class Greedy:
    """The least mean loss so far, of a few random ones at first. A class that only this script has:
    workers get it from the client.
    """

    explore: Any = 0.1

    def init(self, known: Any) -> Any:
        import jax.numpy as jnp

        return jnp.zeros((2, known.num_actions))

    def act(self, state: Any, t: Any, u: Any) -> Any:
        import jax.numpy as jnp

        actions = state.shape[1]
        drawn = jnp.minimum((u / self.explore * actions).astype(jnp.int32), actions - 1)
        best = jnp.argmin(state[0] / jnp.maximum(state[1], 1)).astype(jnp.int32)
        return jnp.where(u < self.explore, drawn, best), ()

    def learn(self, state: Any, t: Any, play: Any, arrivals: Any) -> Any:
        import jax.numpy as jnp

        for lane in range(arrivals.due.shape[0]):
            mine = jnp.arange(state.shape[1]) == arrivals.play.action[lane]
            seen = (mine & arrivals.due[lane]).astype(state.dtype)
            state = state + jnp.stack([seen * arrivals.play.loss[lane], seen])
        return state, ()


def sweep(**options: Any) -> xr.Dataset:
    """Three programs, 36 blocks of some tenths of a second."""
    return jb.sweep(
        lambda delay: jb.make_environment("paper-utility", states=4, delays=jb.FixedDelay(delay)),
        {
            "DAda-Exp3": jb.make_learner("dada-exp3"),
            "MetaBIO": jb.make_learner("metabio"),
            "Greedy": lambda delay: Greedy(explore=0.1),
        },
        {"delay": [3, 7, 20]},
        horizon=6_000,
        runs=256,
        rounds=20,
        width=64,
        **options,
    )


def client(address: str, store: str, out: str) -> None:
    from distributed import Client

    with Client(address, timeout=60) as connected:
        data = sweep(store=store, client=connected, progress=False)
    part = Path(out).with_suffix(".part")
    part.write_bytes(pickle.dumps(data))
    part.rename(out)


# --- the one who treats it badly


class Cluster:
    """Processes that do not outlive the round."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.all, self.workers = folder, [], []
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
        port = self.address.rpartition(":")[2]
        self.dask("scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard")
        for _ in range(WORKERS):
            self.join()

    def start(self, *command: str) -> Any:
        with open(self.folder / "log", "a") as log:
            process = subprocess.Popen([sys.executable, *command], stdout=log, stderr=log)
        self.all.append(process)
        return process

    def dask(self, *command: str) -> Any:
        return self.start("-m", "dask", *command)

    def join(self) -> None:
        places = ["--local-directory", str(self.folder / "scratch"), "--no-dashboard"]
        self.workers.append(
            self.dask("worker", self.address, "--no-nanny", "--nthreads", "1",
                      "--host", "127.0.0.1", *places)
        )  # fmt: skip

    def client(self) -> Any:
        store, out = self.folder / "store", self.folder / "out"
        return self.start(__file__, "--client", self.address, str(store), str(out))

    def end(self) -> None:
        for process in self.all:
            process.kill()
            process.wait()


def play_round(seed: int, folder: Path) -> tuple[xr.Dataset, str]:
    """The result, and what was done to the cluster."""
    moments, out = random.Random(seed), folder / "out"
    blocks = folder / "store" / "blocks"
    begun, killed, joined, kept = time.monotonic(), 0, 0, []
    cluster = Cluster(folder)

    def saved() -> int:
        return len(list(blocks.glob("*.npz")))

    try:
        process, last = cluster.client(), 0
        dies_at = moments.randrange(4, BLOCKS - 8)  # blocks that are saved by then
        while not out.exists():
            if time.monotonic() - begun > PATIENCE:
                raise TimeoutError(f"{saved()} blocks after {PATIENCE} seconds, see {folder}")
            if process.poll() not in (None, 0):
                raise RuntimeError(f"the client has failed, see {folder / 'log'}")
            time.sleep(moments.uniform(0.1, 0.6))
            if len(kept) < 2 and saved() >= dies_at:
                process.kill()
                process.wait()
                kept.append(saved())
                dies_at = moments.randrange(kept[-1] + 1, BLOCKS) if kept[-1] < BLOCKS - 1 else 99
                process = cluster.client()
            if saved() > last and killed < 6:  # it goes on: time for another blow
                last = saved()
                victim = cluster.workers.pop(moments.randrange(len(cluster.workers)))
                victim.kill()
                victim.wait()
                killed += 1
                while len(cluster.workers) < WORKERS:
                    cluster.join()
                    joined += 1
        data = pickle.loads(out.read_bytes())
    finally:
        cluster.end()
    seconds = time.monotonic() - begun
    return data, (
        f"{killed} workers killed, {joined} joined, client killed with {kept} of {BLOCKS} blocks "
        f"saved, {seconds:.0f} s"
    )


def same(one: xr.Dataset, other: xr.Dataset) -> None:
    """Raises where a bit, a type or an attribute differs."""
    xr.testing.assert_identical(one, other)
    for name in one.variables:
        assert one[name].dtype == other[name].dtype, name
        assert np.asarray(one[name]).tobytes() == np.asarray(other[name]).tobytes(), name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--client", nargs=3, metavar=("ADDRESS", "STORE", "OUT"))
    options = parser.parse_args()
    if options.client:
        client(*options.client)
        return
    alone = sweep(progress=False)
    for number in range(1, options.rounds + 1):
        with tempfile.TemporaryDirectory(prefix="check-cluster-") as folder:
            data, story = play_round(options.seed + number, Path(folder))
        same(data, alone)
        print(f"round {number}: {story}: the same bits", flush=True)


if __name__ == "__main__":
    main()
