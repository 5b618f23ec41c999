"""The header of a GGUF file, versions 2 and 3: metadata, and where each tensor lies.

The `gguf` package has a reader too; it makes an array of every word of a vocabulary and takes seconds for that.
"""

import mmap
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trainers.errors import DataError

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_ALIGNMENT = 32  # of the data, where the metadata name no other
_MOST_DIMENSIONS = 4


@dataclass(frozen=True)
class TensorEntry:
    """One tensor: its shape as torch has it (last dimension contiguous), the number of its type, its first byte."""

    shape: tuple[int, ...]
    type: int
    offset: int


@dataclass(frozen=True)
class Header:
    """metadata: numbers, text, truth values and lists by key. tensors: by name. size: of the file, in bytes."""

    path: Path
    metadata: dict[str, Any]
    tensors: dict[str, TensorEntry]
    size: int


def read_header(path: Path) -> Header:
    """Raises DataError if the file is none, is cut off within its header, or is damaged there."""
    try:
        if path.is_fifo():  # which might never open
            raise ValueError("it is a pipe")
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return _parsed(path, content)
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}); give the path of a GGUF file.") from error
    except struct.error as error:
        raise DataError(f"{path} is cut off within its header; get the file again.") from error
    except ValueError as error:
        raise DataError(f"{path} is not a whole GGUF file ({error}); get the file again.") from error


def _parsed(path: Path, content: mmap.mmap) -> Header:
    cursor = _Cursor(content)
    if content[:4] != b"GGUF":
        raise ValueError("it does not begin with GGUF")
    cursor.place = 4
    version = cursor.number("I")
    if version not in (2, 3):
        raise ValueError(f"its version is {version}, little-endian versions 2 and 3 are read")
    tensors, keys = cursor.number("Q"), cursor.number("Q")
    metadata = {cursor.text(): cursor.value(cursor.number("I")) for _ in range(keys)}
    entries = [(cursor.text(), cursor.entry()) for _ in range(tensors)]
    alignment = metadata.get("general.alignment", _ALIGNMENT)
    if not isinstance(alignment, int) or alignment < 1:
        raise ValueError(f"general.alignment is {alignment}")
    start = -(-cursor.place // alignment) * alignment
    placed = {name: TensorEntry(entry.shape, entry.type, start + entry.offset) for name, entry in entries}
    return Header(path, metadata, placed, len(content))


class _Cursor:
    """Reads one thing after another. struct.error where the file ends too early, ValueError for what makes no sense."""

    def __init__(self, content: mmap.mmap) -> None:
        self._content, self.place = content, 0

    def number(self, form: str) -> Any:
        (value,) = struct.unpack_from(f"<{form}", self._content, self.place)
        self.place += struct.calcsize(f"<{form}")
        return value

    def text(self) -> str:
        return self._bytes(self.number("Q")).decode()

    def value(self, kind: int) -> Any:
        """A value of the metadata, an array as a list."""
        return self._list(self.number("I"), self.number("Q")) if kind == _ARRAY else self._single(kind)()

    def entry(self) -> TensorEntry:
        """A tensor; its offset still counts from the beginning of the data."""
        dimensions = self.number("I")
        if dimensions > _MOST_DIMENSIONS:
            raise ValueError(f"a tensor has {dimensions} dimensions")
        shape = [self.number("Q") for _ in range(dimensions)]
        return TensorEntry(tuple(reversed(shape)), self.number("I"), self.number("Q"))

    def _list(self, kind: int, count: int) -> list[Any]:
        if kind not in _SCALARS:
            read = self._single(kind)
            return [read() for _ in range(count)]
        items = np.dtype(_SCALARS[kind]).newbyteorder("<")
        values: list[Any] = np.frombuffer(self._bytes(count * items.itemsize), items).tolist()
        return values

    def _single(self, kind: int) -> Callable[[], Any]:
        if kind == _STRING:
            return self.text
        if kind not in _SCALARS:
            raise ValueError(f"its metadata hold a value of type {kind}")
        return lambda: self.number(_SCALARS[kind])

    def _bytes(self, count: int) -> bytes:
        end = self.place + count
        if end > len(self._content):
            raise struct.error("the file ends here")
        piece = self._content[self.place : end]
        self.place = end
        return piece
