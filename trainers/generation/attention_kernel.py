"""Attention of one decoding step over runs of slots, compiled: keys and values are read once for a group of heads.

Softmax is online (arXiv 1805.02867), over blocks of tokens whatever runs they come from, of which the next is fetched
while one is worked on. All tokens of all rows are one line, cut into equal shares, one a thread; what all know of a row
is merged by its sum of exponentials. So one long row keeps all threads busy, and so do many short ones.
"""

import numpy as np

from trainers.compiled import compiled
from trainers.generation.scoring import LOWEST, QUAD, Floats, Ints, by_row, exponential, fetch, highest_of, score_quad

BLOCK = 64
"""Tokens whose scores are held at a time; with keys and values of width 128 they still fit the first-level cache."""


@compiled
def room_for(queries: Floats, lengths: Ints, offsets: Ints, shares: int) -> tuple[Floats, Ints, Floats, Floats, Floats]:
    """Scaled queries by row, where rows begin in the line of all tokens, and room for what shares find of rows."""
    rows = by_row(queries, len(offsets) - 1)
    edges = np.zeros(len(offsets), np.int64)
    for row in range(len(rows)):
        edges[row + 1] = edges[row] + lengths[offsets[row] : offsets[row + 1]].sum()
    parts, group, width = len(rows) + shares - 1, rows.shape[1], rows.shape[2]
    highest, total = np.full((parts, group), LOWEST), np.zeros((parts, group), np.float32)
    return rows, edges, highest, total, np.zeros((parts, group, width), np.float32)


@compiled
def attend_share(
    share: int, shares: int, queries: Floats, keys: Floats, values: Floats, starts: Ints, lengths: Ints, offsets: Ints,
    places: Ints, known: Floats, edges: Ints, highest: Floats, total: Floats, summed: Floats,
) -> None:  # fmt: skip
    """One thread's part: row r reads runs offsets[r] … offsets[r + 1] - 1 of key-value head r % key_value_heads.

    Scaled queries (rows, group, width), keys and values (key_value_heads, slots, width); places, known: scores that are
    known, as in `Scores`. Along the line row or share grows, so that row + share is another one for each part of a row.
    """
    for row in range(len(edges) - 1):
        low, high = _overlap(share, shares, edges, row)
        if low < high:
            part, head = row + share, row % keys.shape[0]
            mine = slice(offsets[row], offsets[row + 1])
            _attend_stretch(
                queries[row], keys[head], values[head], starts[mine], lengths[mine], places[mine], known,
                low - edges[row], high - edges[row], highest[part], total[part], summed[part],
            )  # fmt: skip


@compiled
def _overlap(share: int, shares: int, edges: Ints, row: int) -> tuple[int, int]:
    """Which tokens of the line are both the share's and the row's: low … high - 1."""
    line = edges[-1]
    return max(line * share // shares, edges[row]), min(line * (share + 1) // shares, edges[row + 1])


@compiled
def _attend_stretch(
    queries: Floats, keys: Floats, values: Floats, starts: Ints, lengths: Ints, places: Ints, known: Floats,
    begin: int, end: int, highest: Floats, total: Floats, summed: Floats,
) -> None:  # fmt: skip
    """Add tokens begin … end - 1 of one row's runs to what is known of the row."""
    scores = np.empty((queries.shape[0], BLOCK), np.float32)
    slots, where = np.zeros((2, BLOCK), np.int64), np.full((2, BLOCK), -1)
    run, at = _skip(lengths, begin)
    run, at, count = _fill(starts, lengths, places, run, at, end - begin, slots[0], where[0])
    left, now = end - begin - count, 0
    while count:
        run, at, following = _fill(starts, lengths, places, run, at, left, slots[1 - now], where[1 - now])
        _score_block(queries, keys, slots[now], where[now], known, slots[1 - now], where[1 - now], scores)
        _to_weights(scores, count, highest, total, summed)
        _add_values(scores, values, slots[now], slots[1 - now], summed)
        left, count, now = left - following, following, 1 - now


@compiled
def _skip(lengths: Ints, tokens: int) -> tuple[int, int]:
    """The run in which a token of the row lies, and its place there."""
    run = 0
    while tokens >= lengths[run]:
        tokens -= lengths[run]
        run += 1
    return run, tokens


@compiled
def _fill(
    starts: Ints, lengths: Ints, places: Ints, run: int, at: int, left: int, slots: Ints, where: Ints
) -> tuple[int, int, int]:
    """Write the slots of the next tokens, at most `left`, and where their scores are known; from place `at` of a run.

    What is left of a block repeats the last slot. Returns the run and the place to go on from, and how many there are.
    """
    count, end = 0, min(left, BLOCK)
    while count < end:
        if at == lengths[run]:
            run, at = run + 1, 0
        for _ in range(min(end - count, lengths[run] - at)):
            slots[count] = starts[run] + at
            where[count] = places[run] + at if places[run] >= 0 else -1
            count, at = count + 1, at + 1
    for t in range(count, BLOCK):
        slots[t], where[t] = slots[max(count - 1, 0)], -1
    return run, at, count


@compiled
def _score_block(
    queries: Floats, keys: Floats, slots: Ints, where: Ints, known: Floats, following: Ints, known_there: Ints,
    scores: Floats,
) -> None:  # fmt: skip
    """scores[head, t] = queries[head] · keys[slots[t]], or known[head, where[t]] of quads of which all is known.

    Meanwhile the keys of following slots whose scores aren't known are fetched: evenly, as memory can't take all
    requests at once.
    """
    for at in range(0, BLOCK, QUAD):
        for t in range(at, at + QUAD):
            if known_there[t] < 0:
                fetch(keys, following[t])
        if min(where[at], where[at + 1], where[at + 2], where[at + 3]) < 0:
            score_quad(queries, keys, slots, at, scores)
        else:
            for head in range(len(queries)):
                for t in range(at, at + QUAD):
                    scores[head, t] = known[head, where[t]]


@compiled
def _to_weights(scores: Floats, count: int, highest: Floats, total: Floats, summed: Floats) -> None:
    """Turn scores into e^(score - highest), and what was summed before to the new highest score of each head.

    Always a whole block, of which tokens beyond `count` get no weight: so loops are vectors without a rest.
    """
    for head in range(len(highest)):
        scores[head, count:] = LOWEST
        top = max(highest[head], highest_of(scores[head]))
        shrink = exponential(highest[head] - top)
        added = np.float32(0.0)
        for t in range(BLOCK):
            weight = exponential(scores[head, t] - top)
            scores[head, t] = weight
            added += weight
        total[head] = total[head] * shrink + added
        highest[head] = top
        for i in range(summed.shape[1]):
            summed[head, i] *= shrink


@compiled
def _add_values(weights: Floats, values: Floats, slots: Ints, following: Ints, summed: Floats) -> None:
    """summed[head] += Σ weights[head, t] values[slots[t]]; four values share each read of a sum."""
    for at in range(0, BLOCK, QUAD):
        for t in range(at, at + QUAD):
            fetch(values, following[t])
        one, two, three, four = slots[at], slots[at + 1], slots[at + 2], slots[at + 3]
        for head in range(summed.shape[0]):
            a, b, c, d = weights[head, at], weights[head, at + 1], weights[head, at + 2], weights[head, at + 3]
            for i in range(summed.shape[1]):
                summed[head, i] += a * values[one, i] + b * values[two, i] + c * values[three, i] + d * values[four, i]


@compiled
def merge_shares(shares: int, edges: Ints, highest: Floats, total: Floats, summed: Floats) -> Floats:
    """What each row attended to (rows, group, width), from its parts."""
    attended = np.zeros((len(edges) - 1, *summed.shape[1:]), np.float32)
    for row in range(len(edges) - 1):
        _merge_row(row, shares, edges, highest, total, summed, attended[row])
    return attended


@compiled
def _merge_row(
    row: int, shares: int, edges: Ints, highest: Floats, total: Floats, summed: Floats, attended: Floats
) -> None:
    """attended[head] of a row from its parts, each weighted by its share of the row's sum of exponentials."""
    for head in range(attended.shape[0]):
        top, whole = LOWEST, np.float32(0.0)
        for share in range(shares):
            low, high = _overlap(share, shares, edges, row)
            if low < high:
                top = max(top, highest[row + share, head])
        for share in range(shares):
            low, high = _overlap(share, shares, edges, row)
            if low < high:
                weight = exponential(highest[row + share, head] - top)
                whole += weight * total[row + share, head]
                attended[head] += weight * summed[row + share, head]
        attended[head] /= whole
