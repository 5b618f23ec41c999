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

FREE, UNVISITED = 0, 1
"""Rows of the masks that a search keeps: columns without a row, columns still to be tried."""


def _trailing_zeros(context: Any, word: Any) -> Any:
    """Number of the lowest bit that is set, as one instruction; the word must not be zero."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], cgutils.false_bit)

    return types.int64(types.uint64), generate


_lowest_bit: Any = intrinsic(_trailing_zeros)


@compiled
def clear_bit(masks: Masks, row: int, column: int) -> None:
    """Take a column out of a row."""
    masks[row, column // WORD] &= ~(ONE << np.uint64(column % WORD))


@compiled
def set_bit(masks: Masks, row: int, column: int) -> None:
    """Put a column into a row."""
    masks[row, column // WORD] |= ONE << np.uint64(column % WORD)


@compiled
def first_common(masks: Masks, row: int, state: Masks, kind: int) -> int:
    """The lowest column in both rows, −1 where there is none."""
    for word in range(masks.shape[1]):
        both = masks[row, word] & state[kind, word]
        if both != 0:
            return int(word * WORD + _lowest_bit(both))
    return -1


@compiled
def augment(root: int, masks: Masks, column_of: Whole, row_of: Whole, state: Masks, path: Whole) -> bool:
    """Match row `root` along an augmenting path found depth first, lowest columns first; False where there is none.

    A row that sees a free column takes it at once; with none marked free this is the plain search of Kuhn. path: room
    for the rows on the way.
    """
    depth = 0
    path[0] = root
    while depth >= 0:
        row = path[depth]
        column = first_common(masks, row, state, FREE)
        if column < 0:
            column = first_common(masks, row, state, UNVISITED)
            if column < 0:
                depth -= 1
                continue
        clear_bit(state, UNVISITED, column)
        if row_of[column] < 0:
            clear_bit(state, FREE, column)
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
def complete(masks: Masks, column_of: Whole, row_of: Whole, state: Masks, path: Whole) -> bool:
    """Make a matching as large as it gets; whether it is perfect then.

    Searches of one sweep share what they visited; sweeps end when one finds nothing.
    """
    found, missing = True, True
    while found and missing:
        found, missing = False, False
        state[UNVISITED] = _ALL
        for row in range(len(masks)):
            if column_of[row] < 0:
                matched = augment(row, masks, column_of, row_of, state, path)
                found |= matched
                missing |= not matched
    return not missing


@compiled
def complete_from_nothing(masks: Masks, column_of: Whole, row_of: Whole, state: Masks, path: Whole) -> None:
    """The perfect matching of Kuhn's plain search, row after row; the graph must have one."""
    column_of[:], row_of[:], state[FREE] = -1, -1, 0
    for row in range(len(masks)):
        state[UNVISITED] = _ALL
        augment(row, masks, column_of, row_of, state, path)
