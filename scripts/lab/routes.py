"""Which neighbour each node of the lab sends through: fewest hops first, then the widest way, then taking turns."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

Rates = Mapping[tuple[int, int], int]  # bit/s of each link by the indices of its ends


def next_hops(rates: Rates, target: int) -> dict[int, int]:
    """For each node that can reach `target`: the neighbour to send through.

    Hops to the target decrease along the way, so that routes never loop. Of equally short ways the one with the widest
    bottleneck is taken, and of equally wide ones that in turn for this target, which spreads targets over them.
    """
    distance = _distances(rates, target)
    width: dict[int, float] = {target: inf}
    hops: dict[int, int] = {}
    for node in sorted(distance, key=lambda node: distance[node])[1:]:
        nearer = [peer for peer in sorted(distance) if (node, peer) in rates and distance[peer] < distance[node]]
        through = {peer: min(rates[node, peer], width[peer]) for peer in nearer}
        width[node] = max(through.values())
        widest = [peer for peer in nearer if through[peer] == width[node]]
        hops[node] = widest[target % len(widest)]
    return hops


def _distances(rates: Rates, target: int) -> dict[int, int]:
    """Hops from each node to `target`, of those that can reach it; nearest first."""
    distance = {target: 0}
    for node in (queue := [target]):
        for source in (source for source, peer in rates if peer == node and source not in distance):
            distance[source] = distance[node] + 1
            queue.append(source)
    return distance
