"""Which clusters a step reads, compiled: each cluster's mass estimated, and the fewest chosen that hold the target.

A cluster's mass, size × e^(query · mean), is put right in two ways (all scores of a group of heads from one read of a
key). Clusters that matter are scored whole. Of the others keys are sampled, a key as often as its cluster's predicted
mass says (systematic sampling, proportional to size), and what was predicted of all of them is scaled to the estimate.
"""

import numpy as np
from numpy.typing import NDArray

from trainers.generation.attention_kernel import BLOCK, LOWEST, exponential, prefetch_slots, score_block
from trainers.generation.compiled import compiled

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

PAGE = 16
"""Tokens of the tail that are read together."""

WHOLE = 32
"""Clusters that are scored whole at least: heads that copy a token look for one key, of which no mean tells."""

SHIFT = 20
"""Densities are ranked in eighths of a factor of two: this many bits of a float are cut off …"""

STEPS = 256
"""… over 32 factors of two; what is below them no longer matters."""

AHEAD = 8
"""Sampled keys that memory is asked for at a time."""


@compiled
def choose(
    queries: Floats, keys: Floats, means: Floats, starts: Ints, sizes: Ints, bounds: Ints, target: float, samples: int,
    offsets: Floats,
) -> tuple[Ints, Ints, Ints, Ints]:  # fmt: skip
    """Runs (starts, lengths, offsets of rows) to read, and how many tokens each head (rows, group) needs by itself.

    queries: scaled, (key_value_heads, group, width); keys: (key_value_heads, slots, width); means, starts, sizes: of
    the clusters; bounds: slots at which the sequence, its clusters, its tail, its recent tokens begin, and its end.
    Sinks and recent tokens are always read, the tail by pages. offsets: for each row a random number in [0, 1).
    """
    rows, group = queries.shape[:2]
    kept = np.empty((rows, group), np.int64)
    pages = -(-(bounds[3] - bounds[2]) // PAGE)
    most = starts.shape[1] + pages + 2
    run_starts, run_lengths = np.empty(rows * most, np.int64), np.empty(rows * most, np.int64)
    run_offsets = np.zeros(rows + 1, np.int64)
    for row in range(rows):
        begins, counts = _with_pages(starts[row], sizes[row], bounds)
        mass, known = _masses(queries[row], keys[row], means[row], begins, counts, bounds, samples, offsets[row])
        chosen = np.zeros(len(counts), np.bool_)
        for head in range(group):
            need = np.float32(target) * (known[head] + mass[head].sum()) - known[head]
            kept[row, head] = _take(mass[head], counts, need, chosen)
        kept[row] += bounds[1] - bounds[0] + bounds[4] - bounds[3]
        run_offsets[row + 1] = _runs(chosen, begins, counts, bounds, run_offsets[row], run_starts, run_lengths)
    last = run_offsets[rows]
    return run_starts[:last].copy(), run_lengths[:last].copy(), run_offsets, kept


@compiled
def _with_pages(starts: Ints, sizes: Ints, bounds: Ints) -> tuple[Ints, Ints]:
    """The clusters of a row and the pages of its tail, in slot order."""
    clusters, tail, end = len(starts), bounds[2], bounds[3]
    pages = -(-(end - tail) // PAGE)
    begins, counts = np.empty(clusters + pages, np.int64), np.empty(clusters + pages, np.int64)
    begins[:clusters], counts[:clusters] = starts, sizes
    for page in range(pages):
        begins[clusters + page] = tail + page * PAGE
        counts[clusters + page] = min(PAGE, end - begins[clusters + page])
    return begins, counts


@compiled
def _runs(chosen: Mask, begins: Ints, counts: Ints, bounds: Ints, at: int, run_starts: Ints, run_lengths: Ints) -> int:
    """Write a row's runs from place `at` on, neighbours joined: sinks, the chosen, recent tokens. Returns the end."""
    run_starts[at], run_lengths[at] = bounds[0], bounds[1] - bounds[0]
    for item in range(len(chosen)):
        if chosen[item] and counts[item]:
            if run_starts[at] + run_lengths[at] != begins[item]:
                at += 1
                run_starts[at], run_lengths[at] = begins[item], 0
            run_lengths[at] += counts[item]
    if run_starts[at] + run_lengths[at] != bounds[3]:
        at += 1
        run_starts[at], run_lengths[at] = bounds[3], 0
    run_lengths[at] += bounds[4] - bounds[3]
    return at + 1


@compiled
def _masses(
    queries: Floats, keys: Floats, means: Floats, begins: Ints, counts: Ints, bounds: Ints, samples: int, offset: float
) -> tuple[Floats, Floats]:
    """Sums of exponentials on one scale a head: (group, clusters and pages), and (group,) of what is always read."""
    group, clusters = len(queries), len(means)
    mass = np.empty((group, len(counts)), np.float32)
    score_block(queries, means, 0, clusters, mass)
    tops, known = _always_read(queries, keys, bounds)
    for head in range(group):
        top = max(tops[head], mass[head, :clusters].max())
        known[head] *= exponential(tops[head] - top)
        tops[head] = top
        for c in range(clusters):
            mass[head, c] = np.float32(counts[c]) * exponential(mass[head, c] - top)
    _put_right(queries, keys, begins, counts, tops, samples, offset, mass[:, :clusters])
    for page in range(clusters, len(counts)):
        _score_whole(queries, keys, begins[page], counts[page], tops, mass[:, page])
    return mass, known


@compiled
def _always_read(queries: Floats, keys: Floats, bounds: Ints) -> tuple[Floats, Floats]:
    """For each head the highest score among sinks and recent tokens, and the sum of e^(score - highest)."""
    group = len(queries)
    highest, total = np.full(group, LOWEST), np.zeros(group, np.float32)
    scores = np.empty((group, BLOCK), np.float32)
    for begin, end in ((bounds[0], bounds[1]), (bounds[3], bounds[4])):
        for at in range(begin, end, BLOCK):
            count = min(BLOCK, end - at)
            score_block(queries, keys, at, count, scores)
            for head in range(group):
                top = max(highest[head], scores[head, :count].max())
                total[head] *= exponential(highest[head] - top)
                highest[head] = top
                for t in range(count):
                    total[head] += exponential(scores[head, t] - top)
    return highest, total


@compiled
def _put_right(
    queries: Floats, keys: Floats, begins: Ints, counts: Ints, tops: Floats, samples: int, offset: float, mass: Floats
) -> None:
    """Replace predicted by exact masses in the likeliest clusters and where `samples` keys would be all of one.

    The others' are scaled.
    """
    likely = _likely(mass)
    each = likely.sum() / np.float32(samples)
    least = np.partition(likely, -WHOLE)[-WHOLE] if len(likely) > WHOLE else np.float32(0.0)
    for c in range(len(likely)):
        if likely[c] >= min(each * counts[c], least):
            likely[c] = 0
            _score_whole(queries, keys, begins[c], counts[c], tops, mass[:, c])
    slots, worth = _drawn(likely, begins, counts, samples, offset)
    sampled = _score_drawn(queries, keys, slots, worth, tops)
    for head in range(len(mass)):
        predicted = np.float32(0.0)
        for c in range(len(likely)):
            predicted += mass[head, c] if likely[c] > 0 else np.float32(0.0)
        scale = sampled[head] / predicted if predicted > 0 else np.float32(1.0)
        for c in range(len(likely)):
            mass[head, c] *= scale if likely[c] > 0 else np.float32(1.0)


@compiled
def _drawn(likely: Floats, begins: Ints, counts: Ints, samples: int, offset: float) -> tuple[Ints, Floats]:
    """Slots of sampled keys, and how many keys each of them stands for."""
    each = likely.sum() / np.float32(samples)
    slots, worth = np.empty(samples + 1, np.int64), np.empty(samples + 1, np.float32)
    drawn, passed, following = 0, np.float32(0.0), np.float32(offset) * each
    for c in range(len(likely)):
        while passed + likely[c] > following and drawn <= samples:
            place = int((following - passed) / likely[c] * counts[c])
            slots[drawn] = begins[c] + min(place, counts[c] - 1)
            worth[drawn] = counts[c] * each / likely[c]
            following += each
            drawn += 1
        passed += likely[c]
    return slots[:drawn], worth[:drawn]


@compiled
def _score_drawn(queries: Floats, keys: Floats, slots: Ints, worth: Floats, tops: Floats) -> Floats:
    """Σ worth × e^(score - top) for each head; slots are known beforehand and fetched early."""
    heads, width = queries.shape
    scores = np.empty((heads, len(slots)), np.float32)
    for sample in range(len(slots)):
        soon = slots[min(sample + AHEAD, len(slots) - 1)]
        prefetch_slots(keys, soon, soon + 1)
        for head in range(heads):
            score = np.float32(0.0)
            for i in range(width):
                score += queries[head, i] * keys[slots[sample], i]
            scores[head, sample] = score
    sums = np.zeros(heads, np.float32)
    for head in range(heads):
        for sample in range(len(slots)):
            sums[head] += worth[sample] * exponential(scores[head, sample] - tops[head])
    return sums


@compiled
def _likely(mass: Floats) -> Floats:
    """How much each cluster matters: its largest share of a head's mass."""
    likely = np.zeros(mass.shape[1], np.float32)
    for head in range(len(mass)):
        total = mass[head].sum()
        for c in range(mass.shape[1]):
            likely[c] = max(likely[c], mass[head, c] / total)
    return likely


@compiled
def _score_whole(queries: Floats, keys: Floats, begin: int, count: int, tops: Floats, mass: Floats) -> None:
    """mass[head] = Σ e^(score - top) of `count` keys."""
    scores = np.empty((len(queries), count), np.float32)
    score_block(queries, keys, begin, count, scores)
    for head in range(len(queries)):
        mass[head] = 0
        for t in range(count):
            mass[head] += exponential(scores[head, t] - tops[head])


@compiled
def _take(mass: Floats, counts: Ints, need: float, chosen: Mask) -> int:
    """Choose the densest clusters that hold `need`, and say how many tokens they are.

    Whole steps of density are counted first; in the last one clusters are taken in their order.
    """
    if need <= 0:
        return 0
    steps = _steps(mass, counts)
    in_step = np.zeros(STEPS + 1, np.float32)
    for c in range(len(mass)):
        in_step[steps[c]] += mass[c]
    last, held = 0, np.float32(0.0)
    while last < STEPS and held + in_step[last] < need:
        held += in_step[last]
        last += 1
    tokens = 0
    for c in range(len(mass)):
        if steps[c] < last or (steps[c] == last and held < need):
            held += mass[c] if steps[c] == last else np.float32(0.0)
            chosen[c] = True
            tokens += counts[c]
    return tokens


@compiled
def _steps(mass: Floats, counts: Ints) -> Ints:
    """Of each cluster, how many steps its mean mass a token lies below the highest one; the last step has no end.

    The bits of a float are its exponent and then its mantissa: cut short, they are a logarithm in straight pieces.
    """
    density = np.empty(len(mass), np.float32)
    for c in range(len(mass)):
        density[c] = mass[c] / np.float32(max(counts[c], 1))
    bits = density.view(np.int32)
    highest = bits.max()
    steps = np.empty(len(mass), np.int64)
    for c in range(len(mass)):
        steps[c] = min((highest - bits[c]) >> SHIFT, STEPS)
    return steps
