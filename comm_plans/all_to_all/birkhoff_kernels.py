"""Compiled Birkhoff–von Neumann decomposition: an integer matrix as a sum of few weighted permutations.

A line is a row or a column; T is the largest sum of a line. Stages last T together, so a line that sums up to less has
slack: time in which it may idle. The published way fixes where each line idles beforehand, by padding; the ladder
spends slack where it saves a stage. Either way the weighted permutations add up to the matrix and a padding of zeros or
more.
"""

import numpy as np

from comm_plans.all_to_all.matching_kernels import (
    FREE,
    ONE,
    WORD,
    Masks,
    Whole,
    clear_bit,
    complete,
    complete_from_nothing,
    set_bit,
)
from comm_plans.compiled import compiled

_ROOM = 8  # stages a line, for a start


@compiled
def line_sums(matrix: Whole) -> tuple[Whole, Whole]:
    """Sums of the rows, and of the columns."""
    size = len(matrix)
    rows, columns = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for row in range(size):
        for column in range(size):
            rows[row] += matrix[row, column]
            columns[column] += matrix[row, column]
    return rows, columns


@compiled
def embedded(quota: Whole) -> Whole:
    """The matrix with padding by the north-west corner rule, so that every line sums up to the largest one."""
    size = len(quota)
    padded = quota.copy()
    rows, columns = line_sums(quota)
    total = max(rows.max(), columns.max())
    row, column = 0, 0
    while row < size and column < size:
        amount = min(total - rows[row], total - columns[column])
        padded[row, column] += amount
        rows[row] += amount
        columns[column] += amount
        if rows[row] == total:
            row += 1
        else:
            column += 1
    return padded


@compiled
def _lower(
    left: Whole, row_slack: Whole, column_slack: Whole, threshold: int, whole: Masks, able: Masks, best: Whole
) -> int:
    """The next threshold, no higher than this one; rewrites the masks of entries that reach it by themselves (`whole`)
    or with the slack of their lines (`able`)."""
    size = len(left)
    best[:] = 0
    for row in range(size):
        most = 0
        for column in range(size):
            reach = left[row, column] + min(row_slack[row], column_slack[column])
            most = max(most, reach)
            best[column] = max(best[column], reach)
        threshold = min(threshold, most)
    threshold = max(1, min(threshold, best.min()))
    whole[:], able[:] = 0, 0
    for row in range(size):
        for column in range(size):
            bit = ONE << np.uint64(column % WORD)
            if left[row, column] >= threshold:
                whole[row, column // WORD] |= bit
            if left[row, column] + min(row_slack[row], column_slack[column]) >= threshold:
                able[row, column // WORD] |= bit
    return threshold


@compiled
def _lasting(
    left: Whole,
    row_slack: Whole,
    column_slack: Whole,
    threshold: int,
    able: Masks,
    column_of: Whole,
    row_of: Whole,
    state: Masks,
) -> int:
    """How long the matching lasts; 0 if slack has gone since the masks were written and some pairs had to part."""
    shortest, all_last = np.int64(2**62), True
    for row in range(len(left)):
        column = column_of[row]
        reach = left[row, column] + min(row_slack[row], column_slack[column])
        shortest = min(shortest, reach)
        if reach < threshold:
            all_last = False
            clear_bit(able, row, column)
            _part(row, column_of, row_of, state)
    return int(shortest) if all_last else 0


@compiled
def _spend(
    weight: int,
    threshold: int,
    left: Whole,
    row_slack: Whole,
    column_slack: Whole,
    whole: Masks,
    column_of: Whole,
    row_of: Whole,
    state: Masks,
) -> None:
    """Take a stage's weight from the entries, and what they lack from the slack of their lines."""
    for row in range(len(left)):
        column = column_of[row]
        idle = max(0, weight - left[row, column])
        left[row, column] -= weight - idle
        row_slack[row] -= idle
        column_slack[column] -= idle
        if left[row, column] < threshold:
            clear_bit(whole, row, column)
            _part(row, column_of, row_of, state)


@compiled
def _part(row: int, column_of: Whole, row_of: Whole, state: Masks) -> None:
    """Take a row out of the matching."""
    column = column_of[row]
    set_bit(state, FREE, column)
    column_of[row], row_of[column] = -1, -1


@compiled
def _with_room(stages: Whole, weights: Whole, count: int) -> tuple[Whole, Whole]:
    """The same lists of stages and weights, twice as long once they are full."""
    if count < len(weights):
        return stages, weights
    return np.concatenate((stages, stages)), np.concatenate((weights, weights))


@compiled
def by_ladder(quota: Whole) -> tuple[Whole, Whole]:
    """Stages (permutations, a row each) and weights, which add up to T.

    Matchings are sought among entries that last for at least a threshold, which falls by a tenth when there is none, so
    that every stage is heavy. Entries that need no slack come first; they stay matched from stage to stage.
    """
    left = quota.copy()
    size = len(left)
    row_slack, column_slack = line_sums(left)
    total = max(row_slack.max(), column_slack.max())
    row_slack, column_slack = total - row_slack, total - column_slack
    words = (size + WORD - 1) // WORD
    whole, able = np.empty((size, words), np.uint64), np.empty((size, words), np.uint64)
    state = np.zeros((2, words), np.uint64)
    column_of, row_of = np.full(size, -1, np.int64), np.full(size, -1, np.int64)
    for column in range(size):
        set_bit(state, FREE, column)
    path, best = np.empty(size + 1, np.int64), np.empty(size, np.int64)
    stages, weights = np.empty((_ROOM * size, size), np.int64), np.empty(_ROOM * size, np.int64)
    count, done = 0, 0
    threshold = _lower(left, row_slack, column_slack, total, whole, able, best)
    while done < total:
        if not complete(whole, column_of, row_of, state, path) and not complete(able, column_of, row_of, state, path):
            lower = threshold - max(1, threshold // 10)
            threshold = _lower(left, row_slack, column_slack, lower, whole, able, best)
            continue
        weight = _lasting(left, row_slack, column_slack, threshold, able, column_of, row_of, state)
        if weight > 0:
            stages, weights = _with_room(stages, weights, count)
            stages[count], weights[count] = column_of, weight
            count, done = count + 1, done + weight
            _spend(weight, threshold, left, row_slack, column_slack, whole, column_of, row_of, state)
    return stages[:count].copy(), weights[:count].copy()


@compiled
def as_published(quota: Whole) -> tuple[Whole, Whole]:
    """Stages and weights as `by_ladder`; the matching of every stage is sought anew by Kuhn's plain search."""
    left = embedded(quota)
    size = len(left)
    total = left[0].sum()
    words = (size + WORD - 1) // WORD
    masks, state = np.zeros((size, words), np.uint64), np.empty((2, words), np.uint64)
    for row in range(size):
        for column in range(size):
            if left[row, column] > 0:
                set_bit(masks, row, column)
    column_of, row_of = np.empty(size, np.int64), np.empty(size, np.int64)
    path = np.empty(size + 1, np.int64)
    stages, weights = np.empty((_ROOM * size, size), np.int64), np.empty(_ROOM * size, np.int64)
    count, done = 0, 0
    while done < total:
        complete_from_nothing(masks, column_of, row_of, state, path)
        weight = total
        for row in range(size):
            weight = min(weight, left[row, column_of[row]])
        stages, weights = _with_room(stages, weights, count)
        stages[count], weights[count] = column_of, weight
        count, done = count + 1, done + weight
        for row in range(size):
            left[row, column_of[row]] -= weight
            if left[row, column_of[row]] == 0:
                clear_bit(masks, row, column_of[row])
    return stages[:count].copy(), weights[:count].copy()
