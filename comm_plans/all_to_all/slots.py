"""When each stage runs, and in how many chunks: slots in which every network card has one partner.

Chunks let the balance for the next slot and the redistribution of the last one run beside the network cards; each slot
costs a latency. Slots grow and then shrink, no faster than the fabric keeps up with, so that little is exposed at both
ends: the chunks of the heaviest stage are cut for that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comm_plans.all_to_all.birkhoff import Stages, birkhoff, quantised_birkhoff
from comm_plans.all_to_all.cluster import Bytes
from comm_plans.all_to_all.slot_kernels import best_chunks, cut

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
    balance: NDArray[np.float64]
    redistribution: NDArray[np.float64]
    growth: float


def in_order(stages: Stages) -> Slots:
    """A slot a stage, in the order in which they were found."""
    return Slots(np.arange(len(stages.weights)), *stages)


def best_slots(quota: Bytes, pace: Pace, chunks: int | None) -> Slots:
    """The fastest slots at this pace for `quota` bytes a card between servers; `chunks` of the heaviest stage, where
    given."""
    costs = pace.nic_bytes, pace.latency, pace.balance, pace.redistribution
    choices = [
        (stages, *best_chunks(stages.weights, MOST_CHUNKS, pace.growth, *costs)) for stages in _stages(quota, pace)
    ]
    stages, count, _ = min(choices, key=lambda choice: choice[2])
    stage, weights = cut(stages.weights, chunks or count, pace.growth)
    return Slots(stage, stages.partners[stage], weights)


def _stages(quota: Bytes, pace: Pace) -> Iterator[Stages]:
    """The exact ones; where latencies count, also fewer."""
    exact = birkhoff(quota)
    yield exact
    if len(exact.weights) * pace.latency > WORTH_FEWER * exact.weights.sum() / pace.nic_bytes:
        for parts in PARTS:
            yield quantised_birkhoff(quota, parts)
