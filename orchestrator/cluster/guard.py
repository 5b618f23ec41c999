"""No process outlives the one that started Ray, even one that is killed: Ray's own agents would stay for a minute."""

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator.cluster import reaper

_VARIABLE = "ORCHESTRATOR_GUARD"


@contextmanager
def guarded() -> Iterator[None]:
    """Processes started inside the block, and theirs, are ended with it or with this process. Needs /proc (Linux)."""
    owner, mark = os.getpid(), uuid.uuid4().hex
    earlier = [str(number) for number, _ in reaper.descendants(owner, set())]
    watcher = subprocess.Popen(
        [sys.executable, "-ISE", reaper.__file__, f"{_VARIABLE}={mark}", str(owner), *earlier],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C in a terminal must not end it first
    )
    os.environ[_VARIABLE] = mark
    try:
        yield
    finally:
        del os.environ[_VARIABLE]
        watcher.communicate()
