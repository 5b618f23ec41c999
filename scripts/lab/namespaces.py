"""Network namespaces by name: which there are, being inside one, and the processes that live there."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

from comm_plans.lab_state import LabError, LabState
from lab.shell import run

FOLDER = Path("/run/netns")
CLONE_NEWNET = 0x40000000
GRACE = 5.0  # seconds between asking a process to end and ending it
MARK = "NETWORK_LAB_MARK"


def present() -> set[str]:
    """Names of the namespaces on this machine."""
    return {path.name for path in FOLDER.glob("*")}


def remove(namespace: str) -> None:
    """Remove a namespace, unless somebody else is quicker. Raises LabError."""
    try:
        run("ip", "netns", "del", namespace)
    except LabError:
        if namespace in present():
            raise


def enter(namespace: str | Path) -> None:
    """Move this thread, and the processes it will start, into a namespace for good. Raises OSError."""
    with (FOLDER / namespace).open() as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(namespace))


@contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Be in a namespace within the block: this thread, its sockets, and the processes it starts."""
    with Path("/proc/thread-self/ns/net").open() as own:
        enter(namespace)
        try:
            yield
        finally:
            enter(Path(f"/proc/self/fd/{own.fileno()}"))


def free_port(address: str) -> int:
    """A port of this address on which nobody listens, in the namespace that this thread is in."""
    with socket.socket() as probe:
        probe.bind((address, 0))
        return int(probe.getsockname()[1])


def processes(state: LabState) -> set[int]:
    """Processes in the lab's namespaces, and those that carry its mark elsewhere; never this one."""
    homes = {(FOLDER / name).stat().st_ino for name in {node.namespace for node in state.nodes} & present()}
    mark = f"{MARK}={state.mark}".encode()
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "ns/net").stat().st_ino in homes or mark in (folder / "environ").read_bytes().split(b"\0"):
                found.add(int(folder.name))
        except OSError:  # it has ended meanwhile
            continue
    return found - {os.getpid()}


def end_processes(state: LabState) -> None:
    """End all processes of the lab, one by one: asked first, then without asking."""
    begin = monotonic()
    while found := processes(state):
        for process in found:
            _signal(process, signal.SIGTERM if monotonic() < begin + GRACE else signal.SIGKILL)
        sleep(0.1)


def _signal(process: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(process, number)
