"""Which process works on something, told so that it cannot be mistaken for another one, whenever it is asked for."""

import os
from pathlib import Path


def this_process() -> str:
    """`BOOT NAMESPACE NUMBER START` of the calling process: numbers are used again, and anew in each container."""
    return f"{_machine()} {os.getpid()} {_start(os.getpid())}"


def lives(process: str) -> bool | None:
    """Whether a process that `this_process` told of is still there; None for one that cannot be seen from here."""
    machine, number, start = process.rsplit(" ", 2)
    if machine != _machine():
        return None
    return _start(int(number)) == start


def _machine() -> str:
    """The running kernel, and the container within it."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {Path('/proc/self/ns/pid').readlink()}"


def _start(number: int) -> str | None:
    """When a process began; None for one that is gone."""
    state, start = state_and_start(number)
    return start if state not in ("", "Z") else None


def state_and_start(number: int) -> tuple[str, str]:
    """A process's state, such as R, S or T, and when it began, by the kernel's clock; empty for one that is gone."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return "", ""
    return fields[0], fields[19]
