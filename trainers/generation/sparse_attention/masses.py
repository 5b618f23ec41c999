"""What mass each cluster holds for a step's queries, compiled: estimated, and put right by exact scores of some keys.

A cluster's mass, size × e^(query · mean), is put right in two ways (all scores of a group of heads from one read of a
key). Clusters that matter are scored whole. Of the others keys are sampled, a key as often as its cluster's predicted
mass says (systematic sampling, proportional to size), and what was predicted of all of them is scaled to the estimate.
"""

import numpy as np

from trainers.compiled import compiled
from trainers.generation.scoring import Floats, Ints, exponential, highest_of, in_quads, score_slots, total_of
from trainers.generation.sparse_attention.density import Mask, densest

WHOLE = 32
"""Clusters that are scored whole at least: heads that copy a token look for one key, of which no mean tells."""

AHEAD = 16
"""Keys that memory is asked for before they are scored."""


@compiled
def predict(queries: Floats, means: Floats, counts: Ints, mass: Floats, tops: Floats) -> None:
    """mass[head, 1 + c] = size × e^(query · mean - top) of cluster c; a head's top is the highest of its scores."""
    clusters = len(means)
    slots = np.minimum(np.arange(in_quads(clusters)), clusters - 1)
    scores = np.empty((len(queries), len(slots)), np.float32)
    score_slots(queries, means, slots, AHEAD, scores)
    for head in range(len(queries)):
        tops[head] = highest_of(scores[head])
        for c in range(clusters):
            mass[head, 1 + c] = np.float32(counts[1 + c]) * exponential(scores[head, c] - tops[head])


@compiled
def find_likely(mass: Floats, clusters: int, likely: Floats) -> None:
    """How much each cluster matters: its largest share of the mass that clusters have for a head."""
    for head in range(len(mass)):
        share = np.float32(1.0) / total_of(mass[head, 1 : 1 + clusters])
        for item in range(1, 1 + clusters):
            likely[item] = max(likely[item], mass[head, item] * share)


@compiled
def mark_whole(likely: Floats, counts: Ints, clusters: int, samples: int, whole: Mask) -> None:
    """Of clusters the likeliest, and those of which all keys would be sampled; of other items all."""
    mine = slice(1, 1 + clusters)
    densest(likely[mine], np.ones(clusters, np.float32), WHOLE, whole[mine])
    each = total_of(likely) / np.float32(samples)
    for item in range(1, 1 + clusters):
        whole[item] |= likely[item] >= each * np.float32(counts[item])


@compiled
def raise_tops(scores: Floats, tops: Floats, mass: Floats) -> None:
    """Let tops be no lower than exact scores (group, scored), and masses on their scale."""
    for head in range(len(scores)):
        top = max(tops[head], highest_of(scores[head]))
        shrink = exponential(tops[head] - top)
        tops[head] = top
        for item in range(mass.shape[1] if shrink < 1 else 0):
            mass[head, item] *= shrink


@compiled
def slots_of(begins: Ints, counts: Ints, items: Ints) -> Ints:
    """The slots of items in order, the last one repeated to fill a quad."""
    slots = np.empty(in_quads(counts[items].sum()), np.int64)
    at = 0
    for item in items:
        for place in range(counts[item]):
            slots[at + place] = begins[item] + place
        at += counts[item]
    slots[at:] = slots[at - 1]
    return slots


@compiled
def put_exactly(scores: Floats, counts: Ints, items: Ints, tops: Floats, mass: Floats) -> None:
    """Replace the masses (group, items) of items by exact ones, on the scale of `tops`, from scores of all of them."""
    weights = np.empty(scores.shape[1], np.float32)
    for head in range(len(scores)):
        for t in range(len(weights)):
            weights[t] = exponential(scores[head, t] - tops[head])
        at = 0
        for item in items:
            mass[head, item] = total_of(weights[at : at + counts[item]])
            at += counts[item]


@compiled
def scale_others(
    queries: Floats, keys: Floats, begins: Ints, counts: Ints, likely: Floats, samples: int, offset: float,
    tops: Floats, mass: Floats,
) -> None:  # fmt: skip
    """Scale the masses (group, items) of those that are likely at all to what keys sampled of them say."""
    slots, worth = _drawn(likely, begins, counts, samples, offset)
    scores = np.empty((len(queries), len(slots)), np.float32)
    score_slots(queries, keys, slots, AHEAD, scores)
    for head in range(len(mass)):
        sampled = predicted = np.float32(0.0)
        for sample in range(len(slots)):
            sampled += worth[sample] * exponential(scores[head, sample] - tops[head])
        for item in range(len(likely)):
            predicted += mass[head, item] if likely[item] > 0 else np.float32(0.0)
        scale = sampled / max(predicted, np.float32(1e-30))
        for item in range(len(likely)):
            mass[head, item] *= scale if likely[item] > 0 else np.float32(1.0)


@compiled
def _drawn(likely: Floats, begins: Ints, counts: Ints, samples: int, offset: float) -> tuple[Ints, Floats]:
    """Slots of sampled keys, and how many keys each of them stands for: none what fills a quad."""
    each = total_of(likely) / np.float32(samples)
    slots, worth = np.zeros(in_quads(samples + 1), np.int64), np.zeros(in_quads(samples + 1), np.float32)
    drawn, passed, following = 0, np.float32(0.0), np.float32(offset) * each
    for c in range(len(likely)):
        while passed + likely[c] > following and drawn <= samples:
            place = int((following - passed) / likely[c] * counts[c])
            slots[drawn] = begins[c] + min(place, counts[c] - 1)
            worth[drawn] = counts[c] * each / likely[c]
            following += each
            drawn += 1
        passed += likely[c]
    slots[drawn:] = slots[max(drawn - 1, 0)]
    return slots[: in_quads(drawn)], worth[: in_quads(drawn)]
