"""Rays of one machine start one after another: many at once on few cores run into Ray's own time limits."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

PATIENCE = 300.0  # seconds; whoever starts before us may hang
_LOOK_SECONDS = 0.1


@contextmanager
def turn() -> Iterator[None]:
    """Wait until no other process of this user starts a Ray, at most for PATIENCE; then it is this one's turn."""
    path = Path(tempfile.gettempdir()) / f"orchestrator-start-{os.getuid()}.lock"
    try:
        lock = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:  # somebody else's, or no place for it: start without waiting
        yield
        return
    try:
        _wait_for(lock)
        yield
    finally:
        os.close(lock)


def _wait_for(lock: int) -> None:
    until = monotonic() + PATIENCE
    while monotonic() < until:
        with suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        sleep(_LOOK_SECONDS)
