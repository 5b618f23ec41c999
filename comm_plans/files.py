"""Writing a file so that a reader sees the old content or the new, never a part of either."""

from __future__ import annotations

import os
from pathlib import Path
from secrets import token_hex

from comm_plans.errors import PlansError


def write_atomically(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Replace the file at `path`, or the one that it links to, by `data`, flushed to the disk first.

    `mode` is less what the umask takes away. What is there and no regular file (a pipe, a device) is written to and
    stays. Raises OSError that names `path`.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
        else:
            _replace(Path(os.path.realpath(path)), data, mode)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _replace(path: Path, data: bytes, mode: int) -> None:
    temporary = path.with_name(f".{path.name}.{token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def check_folder(path: str | None) -> None:
    """Raise PlansError if `path`, where given, is a folder, or lies in one that is missing or read-only."""
    if path is None:
        return
    folder = Path(path).resolve().parent
    if Path(path).is_dir():
        raise PlansError(f"{path or 'the empty name'} cannot be written: it is a folder; name a file in it")
    if not folder.is_dir():
        raise PlansError(f"{path} cannot be written: its folder does not exist; make it first")
    if not os.access(folder, os.W_OK) and not Path(path).exists():
        raise PlansError(f"{path} cannot be written: its folder is read-only; choose another")
