"""Compiled perfect matchings on bipartite graphs whose rows are bit masks of columns.

A row's neighbours are words of 64 bits, so that one step of a search looks at 64 columns at once.
"""

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from comm_plans.compiled import compiled

Whole = NDArray[np.int64]
Masks = NDArray[np.uint64]

WORD = 64
ONE = np.uint64(1)
_ALL = np.uint64(2**64 - 1)


def _trailing_zeros(context: Any, word: Any) -> Any:
    """Number of the lowest bit that is set, as one instruction; the word must not be zero."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], cgutils.false_bit)

    return types.int64(types.uint64), generate


_lowest_bit: Any = intrinsic(_trailing_zeros)


@compiled
def clear_bit(mask: Masks, column: int) -> None:
    """Take a column out of a mask."""
    mask[column // WORD] &= ~(ONE << np.uint64(column % WORD))


@compiled
def set_bit(mask: Masks, column: int) -> None:
    """Put a column into a mask."""
    mask[column // WORD] |= ONE << np.uint64(column % WORD)


@compiled
def first_common(mask: Masks, other: Masks) -> int:
    """The lowest column in both masks, −1 where there is none."""
    for word in range(len(mask)):
        both = mask[word] & other[word]
        if both != 0:
            return int(word * WORD + _lowest_bit(both))
    return -1


@compiled
def augment(
    root: int, masks: Masks, column_of: Whole, row_of: Whole, free: Masks, unvisited: Masks, path: Whole
) -> bool:
    """Match row `root` along an augmenting path found depth first, lowest columns first; False where there is none.

    free: unmatched columns, taken at once where a row on the way sees one; all zero for the plain search of Kuhn.
    unvisited: columns still to be tried; it shrinks. path: room for the rows on the way.
    """
    depth = 0
    path[0] = root
    while depth >= 0:
        row = path[depth]
        column = first_common(masks[row], free)
        if column < 0:
            column = first_common(masks[row], unvisited)
            if column < 0:
                depth -= 1
                continue
        clear_bit(unvisited, column)
        if row_of[column] < 0:
            clear_bit(free, column)
            _flip(path, depth, column, column_of, row_of)
            return True
        depth += 1
        path[depth] = row_of[column]
    return False


@compiled
def _flip(path: Whole, depth: int, column: int, column_of: Whole, row_of: Whole) -> None:
    """Give the last row of the path the free column, and each row before it the column its successor held."""
    for place in range(depth, -1, -1):
        row = path[place]
        left = column_of[row]
        column_of[row], row_of[column] = column, row
        column = left


@compiled
def complete(masks: Masks, column_of: Whole, row_of: Whole, free: Masks, unvisited: Masks, path: Whole) -> bool:
    """Extend a matching to a perfect one; False, with a matching as large as it gets, where there is none.

    Searches of one sweep share what they visited; sweeps end when one finds nothing.
    """
    found, missing = True, True
    while found and missing:
        found, missing = False, False
        unvisited[:] = _ALL
        for row in range(len(masks)):
            if column_of[row] < 0:
                matched = augment(row, masks, column_of, row_of, free, unvisited, path)
                found |= matched
                missing |= not matched
    return not missing


@compiled
def complete_from_nothing(
    masks: Masks, column_of: Whole, row_of: Whole, free: Masks, unvisited: Masks, path: Whole
) -> None:
    """The perfect matching of Kuhn's plain search, row after row; the graph must have one."""
    column_of[:], row_of[:], free[:] = -1, -1, 0
    for row in range(len(masks)):
        unvisited[:] = _ALL
        augment(row, masks, column_of, row_of, free, unvisited, path)
