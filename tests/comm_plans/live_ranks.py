"""Ranks as real processes: forked, joined by a store in the test's process, their results brought back."""

from __future__ import annotations

import faulthandler
import gc
import multiprocessing
import signal
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import monotonic
from typing import Any

import torch
from torch import distributed as dist

from comm_plans.runtime.p2p import P2PTransport
from comm_plans.runtime.streams import StreamTransport
from comm_plans.runtime.transport import Transport

TRANSPORTS: dict[str, Callable[..., Transport]] = {"streams": partial(StreamTransport, pace=False), "p2p": P2PTransport}


def run_ranks(world: int, work: Callable[..., Any], *args: object, lost: Collection[int] = (), seconds: float = 60):
    """Call `work(rank, store, *args)` in a process a rank and give the results in rank order.

    Ranks in `lost` are not expected to answer; their result is None. What another rank raises is raised here.
    """
    context = multiprocessing.get_context("fork")
    pipes = [context.Pipe() for _ in range(world)]
    processes = [
        context.Process(target=_rank, args=(rank, pipe, work, args), daemon=True)
        for rank, (_, pipe) in enumerate(pipes)
    ]
    gc.collect()
    gc.freeze()  # what a rank inherits, such as the store of an earlier failure, it must not take down
    for process in processes:
        process.start()
    gc.unfreeze()
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # its thread would not bear a fork
    for pipe, _ in pipes:
        pipe.send(store.port)
    try:
        expected = {pipe: rank for rank, (pipe, _) in enumerate(pipes) if rank not in lost}
        results = _results(expected, monotonic() + seconds)
        return [results.get(rank) for rank in range(world)]
    finally:
        for process in processes:
            process.kill()
            process.join()


def _results(ranks: dict[Connection, int], end: float) -> dict[int, Any]:
    """Results as they come, so that the first rank to fail is the one that is shown."""
    results: dict[int, Any] = {}
    while len(results) < len(ranks):
        waiting = [pipe for pipe, rank in ranks.items() if rank not in results]
        ready = wait(waiting, max(0.0, end - monotonic()))
        assert ready, f"no result in time from the ranks {sorted(ranks[pipe] for pipe in waiting)}"
        for pipe in ready:
            assert isinstance(pipe, Connection)
            fine, results[ranks[pipe]] = pipe.recv()
            assert fine, f"rank {ranks[pipe]}:\n{results[ranks[pipe]]}"
    return results


def _rank(rank: int, pipe: Connection, work: Callable[..., Any], args: tuple[object, ...]) -> None:
    torch.set_num_threads(1)
    faulthandler.dump_traceback_later(50)
    try:
        store = dist.TCPStore("127.0.0.1", pipe.recv(), timeout=timedelta(seconds=60))
        pipe.send((True, work(rank, store, *args)))
    except BaseException:
        pipe.send((False, traceback.format_exc()))
    signal.pause()  # stay until all results are in, so that nobody takes an early end for a fault


@contextmanager
def gloo(store: dist.Store, rank: int, world: int) -> Iterator[None]:
    """torch's own collectives, to compare with."""
    dist.init_process_group("gloo", store=dist.PrefixStore("gloo", store), rank=rank, world_size=world)
    try:
        yield
    finally:
        dist.destroy_process_group()


def open_files() -> int:
    """File descriptors of this process."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())
