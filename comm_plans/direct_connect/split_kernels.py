"""The compiled loops that divide arriving shards among incoming links: a small exact flow for every node and step."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from comm_plans.compiled import compiled

Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]
Hops = NDArray[np.int16]


@compiled
def arrivals(
    starts: Whole, sources: Whole, receiver: Any, rows: Whole, distances: Hops, step: Any
) -> tuple[Whole, Whole, Flags, Whole]:
    """What reaches `receiver` in `step`: the shards, the group of each, and for each group the links into the receiver
    that may bring it and the number of its shards. Shards that the same links may bring are alike."""
    first, degree = starts[receiver], starts[receiver + 1] - starts[receiver]
    own = distances[rows[receiver]]
    count = 0
    for shard in range(len(own)):
        count += own[shard] == step
    shards, group = np.zeros(count, np.int64), np.zeros(count, np.int64)
    able, sizes = np.zeros((count, degree), np.bool_), np.zeros(count, np.int64)
    place, groups = 0, 0
    for shard in range(len(own)):
        if own[shard] != step:
            continue
        for link in range(degree):
            able[groups, link] = distances[rows[sources[first + link]], shard] == step - 1
        group[place] = _first_alike(able, groups)
        shards[place] = shard
        sizes[group[place]] += 1
        groups += group[place] == groups
        place += 1
    return shards, group, able[:groups], sizes[:groups]


@compiled
def _first_alike(able: Flags, last: Any) -> int:
    """The first row that equals row `last`."""
    for row in range(last):
        alike = True
        for link in range(able.shape[1]):
            if able[row, link] != able[last, link]:
                alike = False
                break
        if alike:
            return row
    return int(last)


@compiled
def divided(demands: Whole, able: Flags, room: Whole) -> tuple[Whole, Flags]:
    """Units of each demand over each able link so that link k carries `room[k]` at most; and, where that cannot be,
    the links of a set that is too narrow (all False where it can)."""
    groups, links = able.shape
    flow = np.zeros((groups, links), np.int64)
    left = room.copy()
    came_from = np.empty(links, np.int64)
    over = np.empty(links, np.int64)
    queue = np.empty(links, np.int64)
    narrow = np.zeros(links, np.bool_)
    for group in range(groups):
        wanted = demands[group]
        while wanted > 0:
            # Breadth first over links: from a full link on to those that relieve it of what it carries.
            came_from[:] = -2
            head, tail, free = 0, 0, -1
            for link in range(links):
                if able[group, link]:
                    came_from[link] = -1
                    queue[tail] = link
                    tail += 1
            while head < tail and free < 0:
                link = queue[head]
                head += 1
                if left[link] > 0:
                    free = link
                    break
                for other in range(groups):
                    if flow[other, link] > 0:
                        for way in range(links):
                            if able[other, way] and came_from[way] == -2:
                                came_from[way], over[way] = link, other
                                queue[tail] = way
                                tail += 1
            if free < 0:
                for link in range(links):
                    narrow[link] = came_from[link] != -2
                return flow, narrow
            amount = min(wanted, left[free])
            link = free
            while came_from[link] >= 0:
                amount = min(amount, flow[over[link], came_from[link]])
                link = came_from[link]
            left[free] -= amount
            link = free
            while came_from[link] >= 0:
                flow[over[link], link] += amount
                flow[over[link], came_from[link]] -= amount
                link = came_from[link]
            flow[group, link] += amount
            wanted -= amount
    return flow, narrow


@compiled
def least_load(demands: Whole, able: Flags, weights: Whole) -> tuple[int, int]:
    """The least load (shards, weight) at which all shards fit, by Newton steps over sets that are too narrow."""
    shards, weight = demands.sum(), weights.sum()
    while True:
        _, narrow = divided(demands * weight, able, weights * shards)
        if not narrow.any():
            return shards, weight
        shards, weight = shards * 0, weight * 0
        for link in range(len(weights)):
            if narrow[link]:
                weight += weights[link]
        for group in range(len(demands)):
            inside = True
            for link in range(len(weights)):
                inside &= narrow[link] or not able[group, link]
            if inside:
                shards += demands[group]


@compiled
def least_load_of_step(
    starts: Whole, sources: Whole, weights: Whole, receivers: Whole, rows: Whole, distances: Hops, step: Any
) -> tuple[int, int]:
    """The largest least load of all receivers in one step, as (shards, weight)."""
    worst, under = 0, 1
    for receiver in receivers:
        shards, _, able, sizes = arrivals(starts, sources, receiver, rows, distances, step)
        if len(shards) > 0:
            load, weight = least_load(sizes, able, weights[starts[receiver] : starts[receiver + 1]])
            if load * under > worst * weight:
                worst, under = load, weight
    return worst, under


@compiled
def shares_by_link(starts: Whole, sources: Whole, weights: Whole, distances: Hops, loads: Whole, most: Any) -> Whole:
    """shares[u, v, k]: the part of shard v that comes to u over its k-th link, in units of one over the weight of the
    load (shards, weight) allowed in that step. All nodes must be targets of `distances`, in order."""
    nodes = len(starts) - 1
    shares = np.zeros((nodes, nodes, most), np.int64)
    rows = np.arange(nodes)
    for receiver in range(nodes):
        own = weights[starts[receiver] : starts[receiver + 1]]
        for step in range(1, len(loads) + 1):
            load, unit = loads[step - 1]
            shards, group, able, sizes = arrivals(starts, sources, receiver, rows, distances, step)
            flow, _ = divided(sizes * unit, able, own * load)
            for place in range(len(shards)):  # in link order, so that few shards are cut
                wanted = unit
                for link in range(len(own)):
                    part = min(wanted, flow[group[place], link])
                    flow[group[place], link] -= part
                    shares[receiver, shards[place], link] = part
                    wanted -= part
    return shares
