"""A row times a matrix, compiled: rows of the matrix one after the other, as memory is read fastest."""

import numpy as np
from numpy.typing import NDArray

from trainers.compiled import compiled
from trainers.threads import in_shares, shares_of

Floats = NDArray[np.float32]


def row_product(row: Floats, matrix: Floats) -> Floats:
    """matrix (outputs, width) @ row (width,), by as many threads as torch may use."""
    result = np.empty(len(matrix), np.float32)
    shares = shares_of(matrix.size)
    edges = [len(matrix) * share // shares for share in range(shares + 1)]
    in_shares(lambda share: _products(row, matrix, edges[share], edges[share + 1], result), shares)
    return result


@compiled
def _products(row: Floats, matrix: Floats, begin: int, end: int, result: Floats) -> None:
    for output in range(begin, end):
        total = np.float32(0.0)
        for i in range(len(row)):
            total += matrix[output, i] * row[i]
        result[output] = total
