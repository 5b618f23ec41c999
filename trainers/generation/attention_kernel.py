"""Attention of one decoding step over runs of slots, compiled: keys and values are read once for a group of heads.

Softmax is online (arXiv 1805.02867). All tokens of all rows are one line, cut into equal shares, one a thread; what all
know of a row is merged by its sum of exponentials. So one long row keeps all threads busy, and so do many short ones.
"""

import numpy as np
from numpy.typing import NDArray

from trainers.generation.compiled import compiled
from trainers.generation.prefetch import LINE, prefetch

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

BLOCK = 64
"""Tokens whose scores are held at a time; with keys and values of width 128 they still fit the first-level cache."""

LOWEST = np.float32(-1e30)


@compiled
def exponential(x: np.float32) -> np.float32:
    """e^x for x ≤ 0 within 2e-7 of itself, without a branch or call, so that compilers make vectors of it.

    2^whole is written into the exponent's bits; of the rest, |r| ≤ ln 2 / 2, a Taylor polynomial. Below -87: e^-87.
    """
    x = max(x, np.float32(-87.0))
    whole = np.floor(x * np.float32(1.44269504) + np.float32(0.5))
    r = x - whole * np.float32(0.693359375) + whole * np.float32(2.12194440e-4)
    series = np.float32(1 / 5040) * r + np.float32(1 / 720)
    series = series * r + np.float32(1 / 120)
    series = series * r + np.float32(1 / 24)
    series = series * r + np.float32(1 / 6)
    series = series * r + np.float32(0.5)
    series = series * r * r + r + np.float32(1.0)
    power = np.int32((np.int32(whole) + 127) << 23)
    return np.float32(series * power.view(np.float32))


@compiled
def prefetch_slots(stored: Floats, first: int, end: int) -> None:
    """Fetch slots first … end - 1 of keys or values (slots, width) for what is computed soon."""
    for slot in range(first, end):
        for i in range(0, stored.shape[1], LINE):
            prefetch(stored, slot, i)


@compiled
def score_block(
    queries: Floats, keys: Floats, first: int, count: int, scores: Floats, ahead: int = 0, more: int = 0
) -> None:
    """scores[head, t] = queries[head] · keys[first + t] for t < count; four keys share each read of a query.

    Meanwhile keys ahead … ahead + more - 1 are fetched: evenly, as memory can't take all requests at once.
    """
    heads, width = queries.shape
    fours = count - count % 4
    for t in range(0, fours, 4):
        slot = first + t
        prefetch_slots(keys, ahead + t * more // fours, ahead + (t + 4) * more // fours)
        for head in range(heads):
            a = b = c = d = np.float32(0.0)
            for i in range(width):
                q = queries[head, i]
                a += q * keys[slot, i]
                b += q * keys[slot + 1, i]
                c += q * keys[slot + 2, i]
                d += q * keys[slot + 3, i]
            scores[head, t], scores[head, t + 1], scores[head, t + 2], scores[head, t + 3] = a, b, c, d
    for t in range(fours, count):
        for head in range(heads):
            a = np.float32(0.0)
            for i in range(width):
                a += queries[head, i] * keys[first + t, i]
            scores[head, t] = a


@compiled
def _to_weights(scores: Floats, count: int, highest: Floats, total: Floats, summed: Floats) -> None:
    """Turn scores into e^(score - highest), and what was summed before to the new highest score of each head."""
    for head in range(len(highest)):
        top = highest[head]
        for t in range(count):
            top = max(top, scores[head, t])
        shrink = exponential(highest[head] - top)
        added = np.float32(0.0)
        for t in range(count):
            weight = exponential(scores[head, t] - top)
            scores[head, t] = weight
            added += weight
        total[head] = total[head] * shrink + added
        highest[head] = top
        for i in range(summed.shape[1]):
            summed[head, i] *= shrink


@compiled
def _add_values(weights: Floats, values: Floats, first: int, count: int, summed: Floats, ahead: int, more: int) -> None:
    """summed[head] += Σ weights[head, t] values[first + t], as `score_block`; four values share each read of a sum."""
    heads, width = summed.shape
    fours = count - count % 4
    for t in range(0, fours, 4):
        slot = first + t
        prefetch_slots(values, ahead + t * more // fours, ahead + (t + 4) * more // fours)
        for head in range(heads):
            a, b, c, d = weights[head, t], weights[head, t + 1], weights[head, t + 2], weights[head, t + 3]
            for i in range(width):
                summed[head, i] += (
                    a * values[slot, i] + b * values[slot + 1, i] + c * values[slot + 2, i] + d * values[slot + 3, i]
                )
    for t in range(fours, count):
        for head in range(heads):
            for i in range(width):
                summed[head, i] += weights[head, t] * values[first + t, i]


@compiled
def _block(starts: Ints, lengths: Ints, run: int, at: int) -> tuple[int, int]:
    """First slot and size of the block that begins `at` tokens into a run or, where that is its end, the next run."""
    if at >= lengths[run] and run + 1 < len(starts):
        run, at = run + 1, 0
    return starts[run] + at, min(BLOCK, lengths[run] - at)


@compiled
def _attend_stretch(
    queries: Floats, keys: Floats, values: Floats, starts: Ints, lengths: Ints, begin: int, end: int,
    highest: Floats, total: Floats, summed: Floats,
) -> None:  # fmt: skip
    """Add tokens begin … end - 1 of one row's runs to what is known of the row."""
    scores = np.empty((queries.shape[0], BLOCK), np.float32)
    passed = 0
    for run in range(len(starts)):
        low, high = max(begin - passed, 0), min(end - passed, lengths[run])
        for at in range(low, high, BLOCK):
            count = min(BLOCK, high - at)
            ahead, more = _block(starts, lengths, run, at + count)
            score_block(queries, keys, starts[run] + at, count, scores, ahead, more)
            _to_weights(scores, count, highest, total, summed)
            _add_values(scores, values, starts[run] + at, count, summed, ahead, more)
        passed += lengths[run]
        if passed >= end:
            return


@compiled
def _overlap(share: int, shares: int, edges: Ints, row: int) -> tuple[int, int]:
    """Which tokens of the line are both the share's and the row's: low … high - 1."""
    line = edges[-1]
    return max(line * share // shares, edges[row]), min(line * (share + 1) // shares, edges[row + 1])


@compiled
def attend_share(
    share: int, shares: int, queries: Floats, keys: Floats, values: Floats, starts: Ints, lengths: Ints, offsets: Ints,
    edges: Ints, highest: Floats, total: Floats, summed: Floats,
) -> None:  # fmt: skip
    """One thread's part: row r reads runs offsets[r] … offsets[r + 1] - 1 of key-value head r % key_value_heads.

    Scaled queries (rows, group, width), keys and values (key_value_heads, slots, width); edges[r] is where row r begins
    in the line. Along the line row or share grows, so that row + share is another one for each part of a row.
    """
    for row in range(len(edges) - 1):
        low, high = _overlap(share, shares, edges, row)
        if low < high:
            part, head = row + share, row % keys.shape[0]
            mine = slice(offsets[row], offsets[row + 1])
            _attend_stretch(
                queries[row], keys[head], values[head], starts[mine], lengths[mine], low - edges[row],
                high - edges[row], highest[part], total[part], summed[part],
            )  # fmt: skip


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
