"""A run's journal read back: the form of its lines, and what counts as torn or damaged."""

import json
import os
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from orchestrator.errors import UserError
from orchestrator.events import Event, Json, event_from_json
from orchestrator.typed_values import check_types

JOURNAL = "journal.jsonl"
_DAMAGE = (ValueError, KeyError, TypeError, AttributeError, RecursionError)  # what reading a bad line raises
FLOAT = "$float"  # JSON has no NaN or infinity; a journal writes {"$float": "nan"}


@dataclass(frozen=True)
class Entry:
    """One line of a journal: its number from 0, the seconds the run had been worked on, and what happened."""

    n: int
    at: float
    event: Event


def read_journal(path: Path) -> list[Event]:
    """All events of a journal in order; a torn last line is left out.

    Raises UserError where there is no journal or where a line before the last is damaged.
    """
    return [entry.event for entry in read_entries(path)]


def read_entries(path: Path) -> list[Entry]:
    """As `read_journal`, with each line's number and time."""
    if not os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises for a name that is too long
        raise UserError(f"{path.parent} is no run folder: it has no {path.name}; name the folder that a run printed")
    return intact_entries(path)[0]


def read_beginning(path: Path) -> Event | None:
    """The first event of a journal, whose rest is not read; None where it is torn or damaged."""
    with path.open("rb") as file:
        try:
            return _entry(file.readline()).event
        except _DAMAGE:
            return None


def intact_entries(path: Path) -> tuple[list[Entry], int]:
    """The entries of all whole lines of a journal, and how many bytes those lines take."""
    entries: list[Entry] = []
    intact = 0
    with BytesIO(path.read_bytes()) as file:  # all at once: a run that goes on may be writing its end
        for number, line in enumerate(file, start=1):
            try:
                entries.append(_entry(line))
            except _DAMAGE as error:
                if file.read(1):
                    raise UserError(
                        f"{path} is damaged at line {number}: cut the file off before that line to go on from there"
                    ) from error
                break
            intact += len(line)
    return entries, intact


def _entry(line: bytes) -> Entry:
    if not line.endswith(b"\n"):
        raise ValueError("the line has no end")
    values = json.loads(line, object_hook=_with_float)
    entry = Entry(values.pop("n"), values.pop("at"), event_from_json(values))
    check_types(entry)
    return entry


def _with_float(values: Json) -> Any:
    return float(values[FLOAT]) if values.keys() == {FLOAT} else values
