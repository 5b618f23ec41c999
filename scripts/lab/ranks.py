"""One command on every rank of a lab: in its namespace, with torch's environment, and its name before each line."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from select import select
from threading import Lock, Thread
from typing import IO

from comm_plans.lab_state import VARIABLE, LabError, LabNode, LabState
from lab.namespaces import free_port, inside

GRACE = 5.0  # seconds that a rank has to end once another has failed
Rank = subprocess.Popen[str]


def rank_environment(state: LabState, rank: int, port: int) -> dict[str, str]:
    """What `torch.distributed.init_process_group` reads, and where the lab's state lies."""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": "0",
        "WORLD_SIZE": str(len(state.ranks)),
        "MASTER_ADDR": state.ranks[0].address,
        "MASTER_PORT": str(port),
        "GLOO_SOCKET_IFNAME": state.ranks[rank].interface,
        VARIABLE: str(LabState.path()),
    }


def free_master_port(state: LabState) -> int:
    """A port for the rendezvous on the first rank."""
    with inside(state.ranks[0].namespace):
        return free_port(state.ranks[0].address)


def run_command(state: LabState, command: Sequence[str]) -> int:
    """Run it on every rank; returns 0, or the exit code of the first that failed, upon which the others are ended."""
    if shutil.which(command[0]) is None:
        raise LabError(f"the command {command[0]} is not there to run; check its name and PATH")
    port = free_master_port(state)
    ranks: list[Rank] = []
    try:
        for rank, node in enumerate(state.ranks):
            ranks.append(_start(node, command, rank_environment(state, rank, port)))
        return _copied(state, ranks)
    finally:
        _end(ranks)


def _start(node: LabNode, command: Sequence[str], environment: dict[str, str]) -> Rank:
    return subprocess.Popen(
        ["ip", "netns", "exec", node.namespace, *command],
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # Ctrl-C is ours to pass on
    )


def _copied(state: LabState, ranks: list[Rank]) -> int:
    """Show what the ranks write until they have ended; returns the exit code."""
    lock = Lock()
    copiers = [
        Thread(target=_copy, args=(node.name, rank.stdout, lock), daemon=True)
        for node, rank in zip(state.ranks, ranks, strict=True)
    ]
    for copier in copiers:
        copier.start()
    code = _first_failure(ranks)
    _end(ranks)
    for copier in copiers:
        copier.join(GRACE)
    return code


def _copy(name: str, lines: IO[str] | None, lock: Lock) -> None:
    for line in lines or ():
        with lock:
            sys.stdout.write(f"[{name}] {line.rstrip()}\n")
            sys.stdout.flush()


def _first_failure(ranks: list[Rank]) -> int:
    """Wait until all have ended well, or one has not."""
    waiting = {os.pidfd_open(rank.pid): rank for rank in ranks}
    try:
        pending = dict(waiting)
        while pending:
            for ended in select(list(pending), [], [])[0]:
                code = pending.pop(ended).wait()
                if code:
                    return code if code > 0 else 128 - code
        return 0
    finally:
        for descriptor in waiting:
            os.close(descriptor)


def _end(ranks: list[Rank]) -> None:
    """End those that still run, and what they started."""
    running = [rank for rank in ranks if rank.poll() is None]
    for rank in running:
        os.killpg(rank.pid, signal.SIGTERM)
    for rank in running:
        try:
            rank.wait(GRACE)
        except subprocess.TimeoutExpired:
            os.killpg(rank.pid, signal.SIGKILL)
            rank.wait()
