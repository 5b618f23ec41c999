"""The folder of one run: what lies where in it, who may write into it, and files that appear whole or not at all."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orchestrator.errors import UserError

JOURNAL = "journal.jsonl"
RESULT = "result.json"
WEIGHTS = "weights.safetensors"
SNAPSHOTS = "snapshots"


def require_new(folder: Path) -> None:
    """Refuse to train into a folder that already holds a run."""
    if (folder / JOURNAL).exists():
        raise UserError(
            f"{folder} already holds a run; go on with it by 'orchestrate resume {folder}', "
            "or choose another folder with hydra.run.dir=…"
        )


def require_run(folder: Path) -> None:
    """Refuse a folder that no run was started in."""
    if not folder.is_dir():
        raise UserError(f"{folder} does not exist; name the folder that 'orchestrate run' printed")
    if not (folder / JOURNAL).is_file():
        raise UserError(f"{folder} is no run folder: it has no {JOURNAL}; name the folder that 'orchestrate run' printed")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the run folder for this process alone. The lock vanishes with the process, however that ends."""
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
            raise UserError(f"{folder} is in use by process {holder}; wait for it or stop it first") from error
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        yield
    finally:
        os.close(descriptor)


def write_result(folder: Path, result: dict[str, Any]) -> None:
    """Write result.json, the outcome of the run for other programs, so that nobody ever meets half of it."""
    temporary = folder / f".{RESULT}.{os.getpid()}"
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(result, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / RESULT)
