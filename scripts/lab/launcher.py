"""A Python function on every rank of a lab: forked, so that what the caller has imported is there at once.

    def all_reduce_seconds(rank, size):
        torch.distributed.init_process_group("gloo")
        ...
        return seconds

    with standing(file) as state:
        results = run_ranks(state, all_reduce_seconds, 2**20)

The results are those of all ranks, in rank order.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from time import monotonic
from typing import Any

from comm_plans.lab_state import LabError, LabState
from lab.namespaces import enter
from lab.ranks import free_master_port, rank_environment

FORK = get_context("fork")
PATIENCE = 2.0  # seconds for a rank that has returned to write out what it printed


def run_ranks(state: LabState, function: Callable[..., Any], *arguments: Any, seconds: float = 120) -> list[Any]:
    """Call `function(rank, *arguments)` in the namespace of each rank; returns what each returned, in rank order.

    The environment is that of `torch.distributed.init_process_group`. Results travel pickled. Raises LabError, which
    names the rank, when one raises, dies, or has not returned after `seconds`; the others are ended then.
    """
    port = free_master_port(state)
    pipes: dict[Connection, int] = {}
    processes = []
    try:
        for rank, node in enumerate(state.ranks):
            ours, theirs = FORK.Pipe(duplex=False)
            environment = rank_environment(state, rank, port)
            process = FORK.Process(target=_child, args=(theirs, node.namespace, environment, function, rank, arguments))
            process.start()
            theirs.close()
            pipes[ours] = rank
            processes.append(process)
        results = _results(state, pipes, seconds)
        for process in processes:
            process.join(PATIENCE)
        return results
    finally:
        for process in processes:
            process.kill()
            process.join()


def _child(
    pipe: Connection,
    namespace: str,
    environment: dict[str, str],
    function: Callable[..., Any],
    rank: int,
    arguments: tuple[Any, ...],
) -> None:
    try:
        enter(namespace)
        os.environ.update(environment)
        pipe.send((function(rank, *arguments), None))
    except BaseException:
        pipe.send((None, traceback.format_exc()))


def _results(state: LabState, pipes: dict[Connection, int], seconds: float) -> list[Any]:
    deadline = monotonic() + seconds
    results: dict[int, Any] = {}
    while pipes:
        ready = wait(list(pipes), timeout=max(0, deadline - monotonic()))
        if not ready:
            slow = ", ".join(state.ranks[rank].name for rank in pipes.values())
            raise LabError(f"rank {slow} did not return within {seconds:g} s")
        for pipe in ready:
            assert isinstance(pipe, Connection)
            rank = pipes.pop(pipe)
            results[rank] = _result(pipe, state.ranks[rank].name)
    return [results[rank] for rank in sorted(results)]


def _result(pipe: Connection, name: str) -> Any:
    try:
        value, trouble = pipe.recv()
    except EOFError:
        raise LabError(f"rank {name} died without a word") from None
    if trouble:
        raise LabError(f"rank {name} failed:\n{trouble}")
    return value
