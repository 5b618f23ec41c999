"""Which clusters a step reads, compiled: the fewest, by their estimated masses, that hold the target for every head.

What a row, a key-value head, may read are items in slot order: sinks, clusters, pages of the tail, recent tokens. All
but clusters are scored whole.
"""

import numpy as np

from trainers.compiled import compiled
from trainers.generation.scoring import Floats, Ints, by_row, in_quads, score_slots, total_of
from trainers.generation.sparse_attention.density import Mask, densest
from trainers.generation.sparse_attention.masses import (
    AHEAD,
    find_likely,
    mark_whole,
    predict,
    put_exactly,
    raise_tops,
    scale_others,
    slots_of,
)

PAGE = 16
"""Tokens of the tail that are read together."""

Bounds = tuple[int, int, int, int, int]
Chosen = tuple[Ints, Ints, Ints, Ints, Floats, Ints, int]
"""Runs: starts, lengths, offsets of rows, places of scores; scores (group, scored); needed (rows, group); tokens."""

GOLDEN = 0.6180339887498949
"""Multiples of it, cut to what is behind the point, are spread evenly from the first on."""


@compiled
def choose(
    queries: Floats, keys: Floats, means: Floats, starts: Ints, sizes: Ints, bounds: Bounds, target: float,
    samples: int, phase: float,
) -> Chosen:  # fmt: skip
    """What to read, what is known of it, and how many tokens each head needs by itself.

    queries: (heads, width); keys: (key_value_heads, slots, width); means, starts, sizes: of the clusters; bounds: slots
    at which the sequence, its clusters, its tail, its recent tokens begin, and its end. Sinks and recent tokens are
    always read, the tail by pages. phase: a number that decides which keys are sampled, another one in each step.
    """
    rows, group = len(keys), len(queries) // len(keys)
    asked = by_row(queries, rows)
    begins, counts = _items(starts, sizes, bounds)
    mass, likely, tops, whole = _predicted(asked, means, counts, samples)
    scores = np.empty((group, _scored(counts, whole)), np.float32)
    places = np.full(counts.shape, -1)
    chosen, needed = np.zeros(counts.shape, np.bool_), np.zeros((rows, group), np.int64)
    at = 0
    for row in range(rows):
        items = np.flatnonzero(whole[row])
        known = _put_right(asked[row], keys[row], begins[row], counts[row], items, tops[row], mass[row])
        likely[row][items] = 0
        offset = (phase + row) * GOLDEN % 1
        scale_others(
            asked[row], keys[row], begins[row], counts[row], likely[row], samples, offset, tops[row], mass[row]
        )
        _place(counts[row], items, at, places[row])
        scores[:, at : at + known.shape[1]] = known
        at += known.shape[1]
        _choose_row(mass[row], counts[row], target, chosen[row], needed[row])
    run_starts, run_lengths, run_offsets, run_places = _runs(chosen, begins, counts, places)
    return run_starts, run_lengths, run_offsets, run_places, scores, needed, run_lengths.sum()


@compiled
def _items(starts: Ints, sizes: Ints, bounds: Bounds) -> tuple[Ints, Ints]:
    """Where all items (rows, items) begin, and how many tokens they are."""
    rows, clusters = starts.shape
    first, begin, tail, recent, end = bounds
    pages = -(-(recent - tail) // PAGE)
    begins, counts = np.empty((rows, clusters + pages + 2), np.int64), np.empty((rows, clusters + pages + 2), np.int64)
    begins[:, 0], counts[:, 0] = first, begin - first
    begins[:, 1 : clusters + 1], counts[:, 1 : clusters + 1] = starts, sizes
    for page in range(pages):
        at = tail + page * PAGE
        begins[:, clusters + 1 + page], counts[:, clusters + 1 + page] = at, min(PAGE, recent - at)
    begins[:, -1], counts[:, -1] = recent, end - recent
    return begins, counts


@compiled
def _predicted(queries: Floats, means: Floats, counts: Ints, samples: int) -> tuple[Floats, Floats, Floats, Mask]:
    """Masses (rows, group, items) that means tell of, how likely clusters are (rows, items), highest scores (rows,
    group), and what is scored whole (rows, items).
    """
    rows, group = queries.shape[:2]
    mass, tops = np.empty((rows, group, counts.shape[1]), np.float32), np.empty((rows, group), np.float32)
    likely, whole = np.zeros(counts.shape, np.float32), np.ones(counts.shape, np.bool_)
    for row in range(rows):
        predict(queries[row], means[row], counts[row], mass[row], tops[row])
        find_likely(mass[row], means.shape[1], likely[row])
        mark_whole(likely[row], counts[row], means.shape[1], samples, whole[row])
    return mass, likely, tops, whole


@compiled
def _put_right(
    queries: Floats, keys: Floats, begins: Ints, counts: Ints, items: Ints, tops: Floats, mass: Floats
) -> Floats:
    """Score items of a row whole and correct their masses; returns the scores (group, scored)."""
    slots = slots_of(begins, counts, items)
    scores = np.empty((len(queries), len(slots)), np.float32)
    score_slots(queries, keys, slots, AHEAD, scores)
    raise_tops(scores, tops, mass)
    put_exactly(scores, counts, items, tops, mass)
    return scores


@compiled
def _scored(counts: Ints, whole: Mask) -> int:
    """How many scores rows keep: each of all its tokens that are scored whole, in quads."""
    scored = 0
    for row in range(len(counts)):
        scored += in_quads((counts[row] * whole[row]).sum())
    return scored


@compiled
def _place(counts: Ints, items: Ints, at: int, places: Ints) -> None:
    """Where the scores of items are, if those of the first begin at `at`."""
    for item in items:
        places[item] = at
        at += counts[item]


@compiled
def _choose_row(mass: Floats, counts: Ints, target: float, chosen: Mask, needed: Ints) -> None:
    """What each head takes of the items between sinks and recent tokens, which all read anyway."""
    sizes = np.maximum(counts, 1).astype(np.float32)
    mine, inner = np.empty(len(counts), np.bool_), slice(1, len(counts) - 1)
    for head in range(len(mass)):
        always = mass[head, 0] + mass[head, -1]
        need = np.float32(target) * total_of(mass[head]) - always
        mine[:] = False
        if need > 0:
            densest(mass[head, inner] / sizes[inner], mass[head, inner], need, mine[inner])
        mine[0] = mine[-1] = True
        chosen |= mine
        needed[head] = (counts * mine).sum()


@compiled
def _runs(chosen: Mask, begins: Ints, counts: Ints, places: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Starts and lengths of the runs of chosen items, offsets of rows, and places of the runs' scores.

    Neighbours are joined where their scores are side by side too.
    """
    most = chosen.sum()
    starts, lengths, scored = np.empty(most, np.int64), np.zeros(most, np.int64), np.empty(most, np.int64)
    offsets = np.zeros(len(chosen) + 1, np.int64)
    run = -1
    for row in range(len(chosen)):
        slot = place = -1
        for item in range(chosen.shape[1]):
            if chosen[row, item] and counts[row, item]:
                if begins[row, item] != slot or places[row, item] != place:
                    run += 1
                    starts[run], scored[run] = begins[row, item], places[row, item]
                lengths[run] += counts[row, item]
                slot = begins[row, item] + counts[row, item]
                place = places[row, item] + counts[row, item] if places[row, item] >= 0 else -1
        offsets[row + 1] = run + 1
    return starts[: run + 1], lengths[: run + 1], offsets, scored[: run + 1]
