"""Writing a file so that a reader sees the old content or the new, never a part of either."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from comm_plans.errors import PlansError


def write_atomically(path: Path, data: bytes) -> None:
    """Replace `path` by `data`, flushed to the disk first. Raises OSError where the folder cannot be written."""
    path = Path(path)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def check_folder(path: str | None) -> None:
    """Raise PlansError if `path` is to be written into a folder that does not exist."""
    if path and not Path(path).resolve().parent.is_dir():
        raise PlansError(f"{path} cannot be written: its folder does not exist; make it first")
