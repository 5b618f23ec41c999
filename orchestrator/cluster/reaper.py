"""Ends what a process started once that process is gone, however it went. Runs as a program of its own, on /proc.

    python reaper.py MARK OWNER SPARED…

waits until the other end of its standard input closes and then kills whoever has MARK in the environment or descends
from process OWNER, but for the SPARED children. Both signs are needed: Ray's agents overwrite their environment with
their title, and a process whose parent died descends from nobody. So descendants are noted while the owner lives.
"""

import os
import select
import signal
import sys
from pathlib import Path
from time import sleep

LOOK_SECONDS = 2.0
ENDING_SECONDS = 0.1
QUIET_LOOKS = 5  # one may start another while its own end is on the way, and shows no environment during exec
MOST_LOOKS = 100

Process = tuple[int, str]  # its number, and its start in the kernel's clock: numbers are used again


def main(mark: str, owner: int, spared: set[int]) -> None:
    """Watch, then end them all."""
    known: set[Process] = set()
    while not select.select([sys.stdin], [], [], LOOK_SECONDS)[0]:
        known |= descendants(owner, spared)
    quiet = looks = 0
    while quiet < QUIET_LOOKS and looks < MOST_LOOKS:
        known |= descendants(owner, spared) | marked(mark)
        found = known & set(alive())
        for number, _ in found:
            kill(number)
        quiet, looks = 0 if found else quiet + 1, looks + 1
        sleep(ENDING_SECONDS)


def descendants(owner: int, spared: set[int]) -> set[Process]:
    """Living children of the owner and of theirs, without this process and the spared ones."""
    processes = alive()
    found: set[Process] = set()
    parents = {owner}
    while parents:
        children = {process for process, parent in processes.items() if parent in parents and process not in found}
        children = {process for process in children if process[0] not in spared | {os.getpid()}}
        found |= children
        parents = {number for number, _ in children}
    return found


def marked(mark: str) -> set[Process]:
    """Living processes that show the mark in their environment."""
    return {process for process in alive() if mark.encode() in read(process[0], "environ")}


def alive() -> dict[Process, int]:
    """Every process of this machine that is not a zombie, with its parent."""
    numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    processes = {}
    for number in numbers:
        state, parent, *rest = read(number, "stat").rpartition(b")")[2].split() or (b"Z", b"0")
        if state != b"Z":
            processes[number, rest[17].decode()] = int(parent)
    return processes


def read(number: int, name: str) -> bytes:
    """A file of /proc/NUMBER; empty for a process that is gone or someone else's."""
    try:
        return Path(f"/proc/{number}/{name}").read_bytes()
    except OSError:
        return b""


def kill(number: int) -> None:
    """SIGKILL, unless it ended by itself meanwhile."""
    try:
        os.kill(number, signal.SIGKILL)
    except OSError:
        return


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), {int(number) for number in sys.argv[3:]})
