"""Rows of a long benchmark, kept as they come, so that a stopped one goes on: a line of JSON each in BENCH_CACHE."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Key = Sequence[Any]  # of JSON values


class KeptRows:
    """Rows by their keys; where the variable BENCH_CACHE names a file, those of earlier processes too."""

    def __init__(self) -> None:
        named = os.environ.get("BENCH_CACHE")
        self._file = Path(named) if named else None
        self._rows = dict(_read(self._file)) if self._file else {}

    def __contains__(self, key: Key) -> bool:
        return json.dumps(key) in self._rows

    def __getitem__(self, key: Key) -> Row:
        return self._rows[json.dumps(key)]

    def __setitem__(self, key: Key, row: Row) -> None:
        self._rows[json.dumps(key)] = row
        if self._file:
            with self._file.open("a") as lines:
                lines.write(json.dumps([key, row]) + "\n")


def _read(file: Path) -> Iterator[tuple[str, Row]]:
    """What the file holds; a line cut short by a kill is left out."""
    for line in file.read_text().splitlines() if file.exists() else []:
        try:
            key, row = json.loads(line)
        except ValueError:
            continue
        yield json.dumps(key), row
