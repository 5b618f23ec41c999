"""No process outlives the one that started Ray, even one that is killed: Ray's own agents would stay for a minute."""

import os
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

_VARIABLE = "ORCHESTRATOR_GUARD"
# Reads until this process's end of the pipe is gone, however it went, and then ends whoever inherited the mark. Looks
# again until none is left: a process may start another while its own end is on the way.
_SCRIPT = """
cat > /dev/null
looks=0
while [ $looks -lt 50 ]; do
  files=$(grep -las "$0" /proc/[0-9]*/environ)
  [ -n "$files" ] || break
  for file in $files; do
    pid=${file#/proc/}
    kill -9 "${pid%/environ}" 2> /dev/null
  done
  looks=$((looks + 1))
  sleep 0.1
done
"""


@contextmanager
def guarded() -> Iterator[None]:
    """Processes started inside the block, and theirs, are ended with it or with this process. Needs /proc (Linux)."""
    mark = uuid.uuid4().hex
    guard = subprocess.Popen(
        ["/bin/sh", "-c", _SCRIPT, f"{_VARIABLE}={mark}"],
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
        guard.communicate()
