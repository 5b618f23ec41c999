"""How each shard is divided among the links that may bring it, exactly, so that no link exceeds its load.

With the load of a step at p/q all parts are multiples of 1/q, so that the cuts of all nodes fall on few points and a
root needs few trees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from comm_plans.direct_connect.breadth_first import Hops, Links, check_reach
from comm_plans.direct_connect.graphs import Indices
from comm_plans.direct_connect.kernels import all_distances
from comm_plans.direct_connect.split_kernels import least_load_of_step, shares_by_link
from comm_plans.direct_connect.spreads import Spread


def least_loads(links: Links, rows: Indices, distances: Hops, steps: int) -> list[Fraction]:
    """Load of the busiest link in each step by flows; works for any number of links into a node."""
    arguments = links.starts, links.sources, links.weights, links.receivers, rows, distances
    return [Fraction(*map(int, least_load_of_step(*arguments, step))) for step in range(1, steps + 1)]


def breadth_first_spreads(links: Links, loads: Sequence[Fraction]) -> Iterator[Spread]:
    """A breadth-first schedule of all_gather with these loads of the busiest link in each step (least ones or more)."""
    distances = all_distances(links.starts, links.sources)
    check_reach(distances)
    ratios = np.array([(load.numerator, load.denominator) for load in loads], dtype=np.int64)
    shares = shares_by_link(links.starts, links.sources, links.weights, distances, ratios, links.most_into_one)
    places, points = _placed(np.cumsum(shares, axis=2), ratios[distances - 1, 1])
    senders = _senders(links)
    for root in range(links.nodes):
        yield from _spreads_from(root, distances[:, root], places[:, root], points, senders)


def _placed(ends: Indices, units: Indices) -> tuple[Indices, list[Fraction]]:
    """The points at which shards are cut, in order, and for each end of a part the place of its point among them.

    ends: [receiver, root, link] in 1/units[receiver, root].
    """
    base = int(units.max()) + 1
    codes, inverse = np.unique(ends * base + units[:, :, None], return_inverse=True)
    values = [Fraction(int(code) // base, int(code) % base) for code in codes]
    points = sorted({*values, Fraction(0), Fraction(1)})
    place = {point: number for number, point in enumerate(points)}
    return np.array([place[value] for value in values])[inverse].reshape(ends.shape), points


def _senders(links: Links) -> Indices:
    """Source of the k-th link into each node, padded with −1."""
    table = np.full((links.nodes, links.most_into_one), -1, dtype=np.int64)
    targets = links.targets
    table[targets, np.arange(len(targets)) - links.starts[targets]] = links.sources
    return table


def _spreads_from(
    root: int, distances: Hops, places: Indices, points: list[Fraction], senders: Indices
) -> Iterator[Spread]:
    order = np.argsort(distances, kind="stable")[1:]
    ends, steps = places[order], distances[order].astype(np.int64)
    cuts = np.unique(np.append(ends, [0, len(points) - 1])).tolist()
    for cut, following in pairwise(cuts):
        link = (ends <= cut).sum(axis=1)
        share = points[following] - points[cut]
        yield Spread(root, points[cut], share, senders[order, link], order, steps)
