"""Traffic matrices: how many bytes every rank has for every other, from a `.npy` file or as a uniform exchange."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from comm_plans.all_to_all.cluster import MOST_RANKS, Bytes
from comm_plans.errors import TrafficError

MOST_BYTES = 2**62
LARGEST_FILE = 8 * MOST_RANKS**2 + 2**16  # bytes


def uniform_traffic(ranks: int, size: int) -> Bytes:
    """`size` bytes from every rank to every other."""
    traffic = np.full((ranks, ranks), size, np.int64)
    np.fill_diagonal(traffic, 0)
    return traffic


def read_traffic(path: Path) -> Bytes:
    """Read a square matrix of bytes, int64 or whole floats, from a `.npy` file; nothing is unpickled.

    Raises TrafficError where the file is missing, too large, no such file, or the matrix none of bytes.
    """
    try:
        size, ordinary = path.stat().st_size, path.is_file()
    except OSError as error:
        raise TrafficError(f"{path} cannot be read: {error.strerror}; name a .npy file") from error
    if not ordinary:  # a pipe would be waited for
        raise TrafficError(f"{path} is no ordinary file; name a .npy file")
    if size > LARGEST_FILE:
        raise TrafficError(f"{path} is larger than a matrix of {MOST_RANKS} ranks; give a smaller one")
    try:
        return checked_traffic(_mapped(path))
    except TrafficError as error:
        raise TrafficError(f"{path}: {error}") from error


def _mapped(path: Path) -> Any:
    try:
        with np.errstate(over="ignore"):  # sizes beyond 64 bits
            return np.lib.format.open_memmap(path, mode="r")
    except OSError as error:
        raise TrafficError(f"it cannot be read: {error.strerror or 'it is cut off'}; make it anew") from error
    except Exception as error:  # numpy reads the header as a Python literal, which can fail in any way
        raise TrafficError("it is no .npy file of numbers; write one with numpy.save") from error


def checked_traffic(matrix: Any) -> Bytes:
    """A copy in int64. Raises TrafficError for what is not square, not whole, negative, NaN or beyond 2⁶² bytes."""
    matrix = np.asarray(matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise TrafficError(
            f"the traffic has the shape {matrix.shape}; give a square matrix, a row for each sending rank"
        )
    if matrix.dtype.kind not in "iuf":
        raise TrafficError(f"the traffic has the type {matrix.dtype}; give whole numbers of bytes, int64 or float64")
    _refuse(~np.isfinite(matrix), matrix, "is not finite; give a number of bytes")
    _refuse(matrix < 0, matrix, "is negative; bytes are 0 or more")
    _refuse(matrix != np.floor(matrix), matrix, "is not a whole number of bytes; round it")
    if matrix.sum(dtype=np.float64) >= MOST_BYTES:
        raise TrafficError("the traffic adds up to 2⁶² bytes or more, which plans cannot count; divide it by a unit")
    return np.array(matrix, np.int64, order="C")


def _refuse(wrong: Any, matrix: Any, why: str) -> None:
    """Raise for the first entry that is wrong."""
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise TrafficError(f"the traffic from rank {row} to rank {column}, {matrix[row, column]}, {why}")
