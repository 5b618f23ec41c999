"""journal.jsonl: every event of a run, one JSON line each, from which a killed run resumes.

Lines are only ever appended. What a decision rests on is on the disk before the run goes on; a line torn by a kill is
ignored when reading and cut off before the next one is appended. Each line also has `n`, its number from 0, and
`at`, the seconds the run has been worked on, summed over all the processes that took it up.
"""

import fcntl
import json
import math
import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from orchestrator.errors import UserError
from orchestrator.events import (
    Decided,
    Event,
    ForecastMade,
    Json,
    ProbeRan,
    RangeChosen,
    RateChosen,
    RateLowered,
    Recovered,
    RunEnded,
    RunResumed,
    RunStarted,
    SnapshotSaved,
    event_json,
)
from orchestrator.journal_file import FLOAT, intact_entries, read_journal
from orchestrator.recorders.appending import append_line, open_for_appending
from orchestrator.recorders.secrets import mask_all

__all__ = ["Journal", "read_journal"]

_DECISIVE = (
    RunStarted, RunResumed, Recovered, RateLowered, Decided, ProbeRan, ForecastMade, RateChosen, RangeChosen,
    SnapshotSaved, RunEnded,
)  # fmt: skip


_HOLDER = ".held_by"


class Journal:
    """The recorder that must not fail: a run whose journal cannot be written stops with a sentence.

    One process at a time holds a journal; a second one gets a UserError.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = open_for_appending(path)
        self._lock()
        entries, intact = intact_entries(path)
        self._file.truncate(intact)
        self._next = len(entries)
        self._began = time.monotonic() - (entries[-1].at if entries else 0.0)

    @property
    def seconds(self) -> float:
        """How long the run has been worked on so far, over all processes."""
        return time.monotonic() - self._began

    def record(self, event: Event) -> None:
        """Append one line; decisions are on the disk when this returns."""
        line = _dump({"n": self._next, "at": round(self.seconds, 3), **event_json(event)})
        try:
            append_line(self._file, line)
            if isinstance(event, _DECISIVE):
                os.fsync(self._file.fileno())
        except OSError as error:
            raise UserError(
                f"{self._path} cannot be written ({error.strerror}): make room, then `orchestrate resume` this folder"
            ) from error
        self._next += 1

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise UserError(
                f"{self._path.parent} is being worked on by {self._holder()}: wait for it or end it first"
            ) from None
        with suppress(OSError):
            self._path.with_name(_HOLDER).write_text(f"process {os.getpid()} on {socket.gethostname()}")

    def _holder(self) -> str:
        """Who has it, for people: the system's lock alone decides, and goes with whoever held it."""
        try:
            return self._path.with_name(_HOLDER).read_text()
        except OSError:
            return "another process"


def _dump(values: Json) -> bytes:
    values = mask_all(values)
    try:
        text = json.dumps(values, allow_nan=False, separators=(",", ":"))
    except ValueError:
        text = json.dumps(_tagged(values), allow_nan=False, separators=(",", ":"))
    return text.encode() + b"\n"


def _tagged(values: Any) -> Any:
    if isinstance(values, dict):
        return {key: _tagged(value) for key, value in values.items()}
    if isinstance(values, list | tuple):
        return [_tagged(value) for value in values]
    if isinstance(values, float) and not math.isfinite(values):
        return {FLOAT: repr(float(values))}
    return values
