"""Compiled chunks: how stages are cut and in which order the chunks run, and what that costs."""

import numpy as np
from numpy.typing import NDArray

from comm_plans.all_to_all.cluster import Bytes
from comm_plans.compiled import compiled


@compiled
def cut(weights: Bytes, chunks: int, growth: float) -> tuple[Bytes, Bytes]:
    """The stage and the weight of every chunk, of rising, then of falling weight.

    The heaviest stage is cut into `chunks` that grow by the factor `growth` and shrink again, the others into equal
    ones, none larger than the largest of those.
    """
    if len(weights) == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    heaviest = np.argmax(weights)
    ramp = _ramp(weights[heaviest], chunks, growth)
    largest = ramp.max()
    counts = np.empty(len(weights), np.int64)
    for stage in range(len(weights)):
        counts[stage] = len(ramp) if stage == heaviest else -(-weights[stage] // largest)
    stages, sizes = np.empty(counts.sum(), np.int64), np.empty(counts.sum(), np.int64)
    place = 0
    for stage in range(len(weights)):
        share, rest = weights[stage] // counts[stage], weights[stage] % counts[stage]
        for chunk in range(counts[stage]):
            stages[place] = stage
            sizes[place] = ramp[chunk] if stage == heaviest else share + (chunk < rest)
            place += 1
    rising = np.argsort(sizes, kind="mergesort")
    order = np.concatenate((rising[::2], rising[1::2][::-1]))
    return stages[order], sizes[order]


@compiled
def _ramp(weight: int, chunks: int, growth: float) -> Bytes:
    """A weight in chunks that grow geometrically and shrink again; those below one byte are left out."""
    parts = np.empty(chunks)
    for place in range(chunks):
        parts[place] = growth ** min(place, chunks - 1 - place)
    sizes = np.empty(chunks, np.int64)
    part, done, count, total = 0.0, 0, 0, parts.sum()
    for place in range(chunks):
        part += parts[place]
        end = weight if place == chunks - 1 else min(weight, round(part / total * weight))
        if end > done:
            sizes[count] = end - done
            done, count = end, count + 1
    return sizes[:count]


@compiled
def slot_seconds(
    sizes: Bytes,
    nic_bytes: float,
    latency: float,
    balance: NDArray[np.float64],
    redistribution: NDArray[np.float64],
) -> float:
    """Fluid time of slots, each beside the balance of the next and the redistribution of the last.

    latency: seconds a slot; balance, redistribution: how long they keep a GPU sending and receiving, as parts of the
    time of the cards.
    """
    seconds = 0.0
    for step in range(len(sizes) + 2):
        before = sizes[step - 2] / nic_bytes if step >= 2 else 0.0
        now = sizes[step - 1] / nic_bytes if 1 <= step <= len(sizes) else 0.0
        after = sizes[step] / nic_bytes if step < len(sizes) else 0.0
        for way in range(2):
            now = max(now, after * balance[way] + before * redistribution[way])
        seconds += now + latency
    return seconds


@compiled
def best_chunks(
    weights: Bytes,
    most: int,
    growth: float,
    nic_bytes: float,
    latency: float,
    balance: NDArray[np.float64],
    redistribution: NDArray[np.float64],
) -> tuple[int, float]:
    """Into how many chunks, a power of two up to `most`, to cut the heaviest stage; and the seconds."""
    best, fastest, chunks = 1, np.inf, 1
    while chunks <= most:
        _, sizes = cut(weights, chunks, growth)
        seconds = slot_seconds(sizes, nic_bytes, latency, balance, redistribution)
        if seconds < fastest:
            best, fastest = chunks, seconds
        chunks *= 2
    return best, fastest
