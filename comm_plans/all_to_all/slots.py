"""When each stage runs, and in how many chunks: slots in which every network card has one partner.

Chunks let the balance for the next slot and the redistribution of the last one run beside the network cards; each slot
costs a latency. Slots grow and then shrink, no faster than the fabric keeps up with, so that little is exposed at both
ends: the chunks of the heaviest stage are cut for that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from comm_plans.all_to_all.birkhoff import Stages, birkhoff, quantised_birkhoff
from comm_plans.all_to_all.cluster import Bytes

MOST_CHUNKS = 64
PARTS = (64, 16, 4, 1)
WORTH_FEWER = 0.01  # part of the time spent on latencies from which fewer stages are tried


class Slots(NamedTuple):
    """Slot x runs a part of stage `stage[x]`: server i sends to `partners[x, i]`, up to `weights[x]` bytes a card."""

    stage: Bytes
    partners: Bytes
    weights: Bytes


class Pace(NamedTuple):
    """What a slot costs: bytes a second of a card, seconds a slot; how long balance and redistribution keep a GPU
    sending and receiving, as parts of the time of the cards; by what factor the next slot may be larger."""

    nic_bytes: float
    latency: float
    balance: tuple[float, float]
    redistribution: tuple[float, float]
    growth: float

    def seconds(self, weights: Bytes) -> float:
        """Fluid time of slots of these weights, each beside the balance of the next and what the last one hands on."""
        sending = weights / self.nic_bytes
        inside = np.zeros((2, len(weights) + 2))
        inside[:, :-2] += np.multiply.outer(self.balance, sending)
        inside[:, 2:] += np.multiply.outer(self.redistribution, sending)
        busiest = inside.max(0)
        busiest[1:-1] = np.maximum(busiest[1:-1], sending) + self.latency
        return float(busiest.sum())


def in_order(stages: Stages) -> Slots:
    """A slot a stage, in the order in which they were found."""
    return Slots(np.arange(len(stages.weights)), *stages)


def arranged(stages: Stages, chunks: int, growth: float) -> Slots:
    """Stages cut into chunks of rising, then of falling weight.

    The heaviest is cut into `chunks` that grow by the factor `growth` and shrink again, the others into equal ones,
    none larger than the largest of those.
    """
    heaviest = int(stages.weights.argmax()) if len(stages.weights) else 0
    ramp = _ramp(int(stages.weights.max(initial=0)), chunks, growth)
    counts = -(-stages.weights // max(1, int(ramp.max(initial=1))))
    counts[heaviest : heaviest + 1] = len(ramp)
    stage = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(len(stage)) - np.repeat(np.cumsum(counts) - counts, counts)
    weights = (stages.weights // counts)[stage] + (place < (stages.weights % counts)[stage])
    weights[stage == heaviest] = ramp
    rising = np.argsort(weights, kind="stable")
    order = np.concatenate((rising[::2], rising[1::2][::-1]))
    return Slots(stage[order], stages.partners[stage[order]], weights[order])


def _ramp(weight: int, chunks: int, growth: float) -> Bytes:
    """A weight in chunks that grow geometrically and shrink again; those below one byte are left out."""
    place = np.arange(chunks)
    parts = growth ** np.minimum(place, place[::-1])
    ends = np.rint(np.cumsum(parts) / parts.sum() * weight).astype(np.int64)
    ends[-1] = weight
    sizes: Bytes = np.diff(ends, prepend=0)
    return sizes[sizes > 0]


def best_slots(quota: Bytes, pace: Pace, chunks: int | None) -> Slots:
    """The fastest slots at this pace for `quota` bytes a card between servers; `chunks` of the heaviest stage, where
    given."""
    counts = [chunks] if chunks else [2**power for power in range(MOST_CHUNKS.bit_length())]
    choices = (arranged(stages, count, pace.growth) for stages in _decompositions(quota, pace) for count in counts)
    return min(choices, key=lambda slots: pace.seconds(slots.weights))


def _decompositions(quota: Bytes, pace: Pace) -> Iterator[Stages]:
    """The exact one; where latencies count, also some of fewer stages."""
    exact = birkhoff(quota)
    yield exact
    if len(exact.weights) * pace.latency > WORTH_FEWER * exact.weights.sum() / pace.nic_bytes:
        for parts in PARTS:
            yield quantised_birkhoff(quota, parts)
