"""The queue between a run and MLflow: a file of operations, and how far MLflow has taken them.

A run appends; one thread delivers. Whatever was not delivered when the process ended is still in the file and is
delivered by a later process. The file goes away once the run's end has been delivered.
"""

import fcntl
import json
import os
from itertools import islice
from pathlib import Path
from typing import Any

from orchestrator.recorders.appending import append_line, open_for_appending

Operation = dict[str, Any]  # {"op": KIND, …}; Store has a _send_KIND for each

SPOOL = "mlflow_spool.jsonl"
_STATE = "mlflow.json"


class SpoolBusyError(Exception):
    """Another process holds this spool: its run is alive."""


class Spool:
    """Operations of one run folder, in order. Holding it keeps other processes off; SpoolBusyError if one has it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / SPOOL
        self._file = open_for_appending(self._path)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise SpoolBusyError(str(folder)) from None
        self._state: dict[str, Any] = self._read_state()
        self._mend()

    @property
    def run_id(self) -> str | None:
        """MLflow's id of the run, once it has one; kept for later processes."""
        run_id: str | None = self._state.get("run_id")
        return run_id

    def keep(self, **values: str) -> None:
        """Note `run_id`, `uri`, `experiment`, `parent` for whoever delivers later."""
        self._state.update(values)
        self._write_state()

    def noted(self, name: str) -> str | None:
        """A value that `keep` was given, maybe by an earlier process."""
        value: str | None = self._state.get(name)
        return value

    def append(self, operation: Operation) -> None:
        """Queue one operation. OSError when the disk is full."""
        append_line(self._file, json.dumps(operation, separators=(",", ":")).encode() + b"\n")

    def pending(self, limit: int | None = 200) -> tuple[list[Operation], int]:
        """Up to `limit` operations not yet delivered, and the position behind them for `delivered`."""
        with self._path.open("rb") as file:
            file.seek(self._delivered)
            lines = [line for line in islice(file, limit) if line.endswith(b"\n")]
        return [json.loads(line) for line in lines], self._delivered + sum(map(len, lines))

    def delivered(self, position: int) -> None:
        """Everything before `position` is in MLflow."""
        self._state["delivered"] = position
        self._write_state()

    @property
    def is_empty(self) -> bool:
        """Whether MLflow has everything."""
        return not self._path.exists() or self._path.stat().st_size <= self._delivered

    def close(self) -> None:
        """Let go of the file, and remove it if there is nothing left in it."""
        if self.is_empty:
            self.delivered(0)  # before the file goes: a kill in between repeats a delivery, which MLflow does not mind
            self._path.unlink()
        self._file.close()

    @property
    def _delivered(self) -> int:
        position: int = self._state.get("delivered", 0)
        return position

    def _mend(self) -> None:
        """Cut off a line torn by a kill."""
        content = self._path.read_bytes()
        self._file.truncate(content.rfind(b"\n") + 1)

    def _read_state(self) -> dict[str, Any]:
        try:
            state: dict[str, Any] = json.loads((self.folder / _STATE).read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return state

    def _write_state(self) -> None:
        temporary = self.folder / f"{_STATE}.{os.getpid()}"
        temporary.write_text(json.dumps(self._state))
        temporary.replace(self.folder / _STATE)
