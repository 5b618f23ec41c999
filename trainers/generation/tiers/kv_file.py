"""The file of one conversation: checked before use, never half there, and nothing in it is ever run.

First line: SHA-256 of all that follows, hexadecimal. Second line: JSON with version, model, and the shape (layers,
key_value_heads, tokens, head_width). Then tokens (int64), keys and values (float32), in this machine's byte order.
"""

import hashlib
import json
import os
from math import prod
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray

from trainers.generation.tiers.kept import Kept

VERSION = 1
_LONGEST_LINE = 4096

Array = NDArray[np.int64] | NDArray[np.float32]


class DamagedError(Exception):
    """The file does not hold what was written."""


def write(path: Path, kept: Kept) -> None:
    """Write it beside its place and move it there, so that readers see the old file or the new one, whole."""
    second_line = _second_line(kept)
    arrays: list[Array] = [np.array(kept.tokens, np.int64), kept.keys.numpy(), kept.values.numpy()]
    draft = path.with_suffix(f".{os.getpid()}{path.suffix}")
    with draft.open("wb") as file:
        file.write(_digest(second_line, arrays) + second_line)
        for array in arrays:
            file.write(array.data)
    draft.replace(path)


def read(path: Path) -> Kept:
    """What was written. Raises DamagedError for anything else, OSError if it can't be read."""
    with path.open("rb") as file:
        digest, second_line = file.readline(_LONGEST_LINE), file.readline(_LONGEST_LINE)
        model, shape = _parsed(second_line)
        tokens, keys, values = arrays = _arrays(file, shape)
    if _digest(second_line, arrays) != digest:
        raise DamagedError("its checksum is another one")
    return Kept(tuple(tokens.tolist()), torch.from_numpy(keys), torch.from_numpy(values), model)


def size(kept: Kept) -> int:
    """Bytes of its file."""
    return len(_digest(b"", [])) + len(_second_line(kept)) + kept.bytes


def _second_line(kept: Kept) -> bytes:
    header = {"version": VERSION, "model": kept.model, "shape": list(kept.keys.shape)}
    return json.dumps(header).encode() + b"\n"


def _digest(second_line: bytes, arrays: list[Array]) -> bytes:
    """The first line."""
    digest = hashlib.sha256(second_line)
    for array in arrays:
        digest.update(array.data)
    return digest.hexdigest().encode() + b"\n"


def _parsed(line: bytes) -> tuple[str, tuple[int, int, int, int]]:
    """Model and shape."""
    try:
        header = json.loads(line)
        layers, heads, tokens, width = map(int, header["shape"])
        model = str(header["model"])
    except (ValueError, KeyError, TypeError, OverflowError) as error:  # the last for Infinity, which JSON can say
        raise DamagedError("its header can't be read") from error
    if header.get("version") != VERSION or min(layers, heads, tokens, width) < 1:
        raise DamagedError("its header holds what is never written")
    return model, (layers, heads, tokens, width)


def _arrays(file: BinaryIO, shape: tuple[int, int, int, int]) -> list[Array]:
    """Tokens, keys and values; no memory is taken before the file proves long enough for it."""
    tokens, elements = shape[2], prod(shape)
    if os.fstat(file.fileno()).st_size - file.tell() != 8 * tokens + 2 * 4 * elements:
        raise DamagedError("it has another length than its header says")
    return [
        np.fromfile(file, np.int64, tokens),
        np.fromfile(file, np.float32, elements).reshape(shape),
        np.fromfile(file, np.float32, elements).reshape(shape),
    ]
