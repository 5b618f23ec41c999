"""Scores of keys that lie anywhere, and exponentials: the compiled parts that choosing and attending share.

A list of slots is scored as if its keys lay in a line: what memory has to bring is asked for some slots ahead.
"""

import math

import numpy as np
from numpy.typing import NDArray

from trainers.compiled import compiled
from trainers.generation.prefetch import LINE, prefetch

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

LANES = 16
"""Numbers that a vector holds at most."""

QUAD = 4
"""Keys that share each read of a query."""

LOWEST = np.float32(-1e30)


@compiled
def exponential(x: np.float32) -> np.float32:
    """e^x within 2e-7 of itself, without a branch or call, so that compilers make vectors of it.

    2^whole is written into the exponent's bits; of the rest, |r| ≤ ln 2 / 2, a Taylor polynomial. Below -87: e^-87;
    above 80: e^80.
    """
    x = min(max(x, np.float32(-87.0)), np.float32(80.0))
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
def by_row(queries: Floats, rows: int) -> Floats:
    """Queries (…, heads, width) times 1 / √width, as (rows, group, width)."""
    width = queries.shape[-1]
    return queries.reshape((rows, queries.size // (rows * width), width)) * np.float32(1 / math.sqrt(width))


@compiled
def total_of(numbers: Floats) -> np.float32:
    """The sum."""
    total = np.float32(0.0)
    for i in range(len(numbers)):
        total += numbers[i]
    return total


@compiled
def highest_of(numbers: Floats) -> np.float32:
    """The highest; of many numbers at once, for which compilers make vectors."""
    lanes = np.full(LANES, LOWEST)
    whole = len(numbers) - len(numbers) % LANES
    for at in range(0, whole, LANES):
        for lane in range(LANES):
            lanes[lane] = max(lanes[lane], numbers[at + lane])
    for at in range(whole, len(numbers)):
        lanes[0] = max(lanes[0], numbers[at])
    top = LOWEST
    for lane in range(LANES):
        top = max(top, lanes[lane])
    return top


@compiled
def fetch(stored: Floats, slot: int) -> None:
    """Ask memory for a key or value of (slots, width)."""
    for i in range(0, stored.shape[1], LINE):
        prefetch(stored, slot, i)


@compiled
def in_quads(count: int) -> int:
    """The least multiple of a quad that holds so many."""
    return -(-count // QUAD) * QUAD


@compiled
def score_quad(queries: Floats, keys: Floats, slots: Ints, at: int, scores: Floats) -> None:
    """scores[head, t] = queries[head] · keys[slots[t]] for t = at … at + 3."""
    one, two, three, four = slots[at], slots[at + 1], slots[at + 2], slots[at + 3]
    for head in range(queries.shape[0]):
        a = b = c = d = np.float32(0.0)
        for i in range(queries.shape[1]):
            q = queries[head, i]
            a += q * keys[one, i]
            b += q * keys[two, i]
            c += q * keys[three, i]
            d += q * keys[four, i]
        scores[head, at], scores[head, at + 1], scores[head, at + 2], scores[head, at + 3] = a, b, c, d


@compiled
def score_slots(queries: Floats, keys: Floats, slots: Ints, ahead: int, scores: Floats) -> None:
    """scores[head, t] = queries[head] · keys[slots[t]] for all slots, a multiple of a quad; fetched `ahead` before."""
    last = len(slots) - 1
    for at in range(0, len(slots), QUAD):
        for t in range(at, at + QUAD):
            fetch(keys, slots[min(t + ahead, last)])
        score_quad(queries, keys, slots, at, scores)
