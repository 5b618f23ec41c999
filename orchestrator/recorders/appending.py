"""A line of a file is written whole or not at all, also when the disk is full."""

import os
from io import FileIO
from pathlib import Path


def open_for_appending(path: Path) -> FileIO:
    """The file without a buffer, which would keep the rest of a failed line and write it later."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("ab", buffering=0)


def append_line(file: FileIO, line: bytes) -> None:
    """Append all of `line`; on an OSError the file is as it was."""
    size = os.fstat(file.fileno()).st_size
    rest = memoryview(line)
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError:
        file.truncate(size)
        raise
