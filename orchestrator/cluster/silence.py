"""Ranks that do not answer: where each of them stands, which of them the others wait for, and how they are ended.

Everything is found out on the rank's own node: the kernel tells whether its process is stopped, and SIGUSR1 makes
it write its stack into its log.
"""

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

from orchestrator.processes import state_and_start

DUMP = signal.SIGUSR1
_DUMP_SECONDS = 2.0
_FRAMES = 20
_WAITING = ("/torch/", "/comm_plans/runtime/")  # whoever stands there waits for the others


@dataclass(frozen=True)
class Process:
    """A rank's process. `started`: in the kernel's clock, because numbers are used again."""

    node: str
    pid: int
    started: str
    log: str


@dataclass(frozen=True)
class Stand:
    """Where a silent rank stands: its stack, innermost frame first, and whether its process is stopped."""

    stack: list[str]
    stopped: bool

    @property
    def words(self) -> str:
        """In a few words."""
        if self.stopped:
            return "its process is stopped"
        return f"it stood at {self.stack[0]}" if self.stack else "it does not say where it stands"

    @property
    def waits(self) -> bool:
        """Whether it only waits for others, as far as one can tell."""
        return not self.stopped and any(part in frame for frame in self.stack[:1] for part in _WAITING)


def own_process(node: str) -> Process:
    """Of the calling process."""
    stderr = Path("/proc/self/fd/2")
    return Process(
        node, os.getpid(), state_and_start(os.getpid())[1], str(stderr.readlink()) if stderr.exists() else ""
    )


def stands(processes: Sequence[Process]) -> list[Stand]:
    """Where each of them stands; whatever node they are on, they are gone afterwards."""
    import ray

    here = ray.util.get_node_ip_address()
    asked = [None if each.node == here else _elsewhere(each) for each in processes]
    unknown = Stand([], stopped=False)
    found = []
    for process, reference in zip(processes, asked, strict=True):
        try:
            found.append(examined(process) if reference is None else ray.get(reference, timeout=10.0))
        except (ray.exceptions.RayError, ray.exceptions.GetTimeoutError):
            found.append(unknown)  # its node is gone, and so is it
    return found


def blamed(found: Sequence[Stand]) -> int:
    """The one that the others wait for: a stopped one, else one that does not wait itself, else the first."""
    return min(range(len(found)), key=lambda number: (not found[number].stopped, found[number].waits, number))


def examined(process: Process) -> Stand:
    """See where a process of this node stands, and end it."""
    stopped = state_and_start(process.pid)[0] in ("T", "t")
    stack = [] if stopped else _stack(process)
    end(process)
    return Stand(stack, stopped)


def end(process: Process) -> None:
    """SIGKILL to a process of this node, if it still is the one that was meant."""
    if state_and_start(process.pid)[1] == process.started:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, signal.SIGKILL)


def _elsewhere(process: Process) -> object:
    import ray

    return ray.remote(examined).options(num_cpus=0, resources={f"node:{process.node}": 0.001}).remote(process)


def _stack(process: Process) -> list[str]:
    """The frames of its main thread as its own interpreter writes them down."""
    log = Path(process.log)
    if not log.is_file() or state_and_start(process.pid)[1] != process.started:
        return []
    before = log.stat().st_size
    os.kill(process.pid, DUMP)
    until = monotonic() + _DUMP_SECONDS
    while log.stat().st_size == before and monotonic() < until:
        sleep(0.02)
    sleep(0.05)  # until all of it is written
    with log.open("rb") as file:
        file.seek(before)
        said = file.read().decode(errors="replace")
    _, _, main = said.rpartition("(most recent call first):")  # the main thread comes last
    return [line.strip() for line in main.splitlines() if line.startswith("  File")][:_FRAMES]
