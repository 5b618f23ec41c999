"""The compiled loops of breadth-first broadcast: distances, and the tightest set of incoming links of every step.

Links lie sorted by target: those into u are `starts[u] … starts[u + 1]` with their `sources` and integer `weights`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from comm_plans.compiled import compiled

Whole = NDArray[np.int64]
Hops = NDArray[np.int16]

_FAR = 30000


@compiled
def distances_to(starts: Whole, sources: Whole, targets: Whole) -> Hops:
    """Hops from every node to each target, a row a target; −1 where there is no way."""
    nodes = len(starts) - 1
    distances = np.full((len(targets), nodes), -1, np.int16)
    queue = np.empty(nodes, np.int64)
    for row in range(len(targets)):
        queue[0] = targets[row]
        distances[row, queue[0]] = 0
        head, tail = 0, 1
        while head < tail:
            node = queue[head]
            head += 1
            for link in range(starts[node], starts[node + 1]):
                source = sources[link]
                if distances[row, source] < 0:
                    distances[row, source] = distances[row, node] + 1
                    queue[tail] = source
                    tail += 1
    return distances


@compiled
def all_distances(starts: Whole, sources: Whole) -> Hops:
    """`distances_to` all nodes, in sweeps over whole rows: far faster where the diameter is small."""
    nodes = len(starts) - 1
    distances = np.full((nodes, nodes), _FAR, np.int16)
    for node in range(nodes):
        distances[node, node] = 0
    changed = True
    while changed:
        changed = False
        for node in range(nodes):
            own = distances[node]
            for link in range(starts[node], starts[node + 1]):
                via = distances[sources[link]]
                difference = np.int16(0)
                for shard in range(nodes):
                    nearest = min(own[shard], np.int16(via[shard] + np.int16(1)))
                    difference |= own[shard] ^ nearest
                    own[shard] = nearest
                changed |= difference != 0
    for node in range(nodes):
        for shard in range(nodes):
            if distances[node, shard] == _FAR:
                distances[node, shard] = -1
    return distances


@compiled
def tightest_sets(
    starts: Whole, sources: Whole, weights: Whole, receivers: Whole, rows: Whole, distances: Hops, steps: int
) -> Whole:
    """For each step the largest ratio, over receivers u and sets S of links into u, of the shards that must come over
    S to the weight of S: a row (shards, weight) a step (spec: fractional Hall condition).

    rows: for each node the row of `distances` that leads to it. A receiver may have at most some 12 links in.
    """
    worst = np.zeros((steps, 2), np.int64)
    worst[:, 1] = 1
    for receiver in receivers:
        first, degree = starts[receiver], starts[receiver + 1] - starts[receiver]
        counts = _counts_by_set(starts, sources, receiver, rows, distances, steps)
        for bit in range(degree):  # sums over subsets, one link at a time
            for chosen in range(1 << degree):
                if chosen >> bit & 1:
                    for step in range(steps):
                        counts[step, chosen] += counts[step, chosen ^ 1 << bit]
        for chosen in range(1, 1 << degree):
            weight = 0
            for bit in range(degree):
                if chosen >> bit & 1:
                    weight += weights[first + bit]
            for step in range(steps):
                if counts[step, chosen] * worst[step, 1] > worst[step, 0] * weight:
                    worst[step, 0], worst[step, 1] = counts[step, chosen], weight
    return worst


@compiled
def _counts_by_set(starts: Whole, sources: Whole, receiver: Any, rows: Whole, distances: Hops, steps: int) -> Whole:
    """How many shards arrive in each step for each set of links that may bring them."""
    first, degree = starts[receiver], starts[receiver + 1] - starts[receiver]
    counts = np.zeros((steps, 1 << degree), np.int64)
    own = distances[rows[receiver]]
    able, before = np.zeros(len(own), np.int16), np.empty(len(own), np.int16)
    for shard in range(len(own)):
        before[shard] = own[shard] - 1
    for bit in range(degree):
        via, flag = distances[rows[sources[first + bit]]], np.int16(1 << bit)
        for shard in range(len(own)):
            able[shard] |= np.int16(via[shard] == before[shard]) * flag
    for shard in range(len(own)):
        if own[shard] > 0:
            counts[own[shard] - 1, able[shard]] += 1
    return counts
