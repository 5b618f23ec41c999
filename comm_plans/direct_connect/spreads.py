"""Schedules of all_gather as spreads: each a part of one shard and the stepped tree over which it reaches all nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import lcm

import numpy as np

from comm_plans.direct_connect.graphs import Indices


@dataclass(frozen=True, eq=False)
class Spread:
    """The part [start, start + share) of the root's shard (size 1), sent over sources[i] → targets[i] in steps[i],
    counted from 1; a node passes on in a later step than it received."""

    root: int
    start: Fraction
    share: Fraction
    sources: Indices
    targets: Indices
    steps: Indices

    def within(self, start: Fraction, share: Fraction) -> Spread:
        """The same tree for a part of the shard."""
        return replace(self, start=start, share=share)

    def restricted(self, start: Fraction, end: Fraction) -> Spread | None:
        """The same tree for what it carries of [start, end), if anything."""
        start, end = max(start, self.start), min(end, self.start + self.share)
        return self.within(start, end - start) if start < end else None


def by_root(spreads: Iterable[Spread]) -> dict[int, list[Spread]]:
    """The spreads of each root, in the order of the parts they carry."""
    found: dict[int, list[Spread]] = {}
    for spread in sorted(spreads, key=lambda each: (each.root, each.start)):
        found.setdefault(spread.root, []).append(spread)
    return found


def common_parts(groups: Sequence[Sequence[Spread]]) -> Iterator[tuple[Fraction, Fraction, list[Spread]]]:
    """Cut several divisions of a shard at all their cuts: start, share and the spread of each group in that part."""
    cuts = sorted({spread.start for group in groups for spread in group} | {Fraction(1)})
    places = [0] * len(groups)
    for start, end in pairwise(cuts):
        for number, group in enumerate(groups):
            if group[places[number]].start + group[places[number]].share <= start:
                places[number] += 1
        yield start, end - start, [group[place] for group, place in zip(groups, places, strict=True)]


def loads_of(spreads: Sequence[Spread], bandwidths: Indices) -> list[Fraction]:
    """For each step the most that a link carries, in whole shards a unit of its bandwidth.

    bandwidths: [source, target] whole units, 0 where there is no link.
    """
    nodes, steps = len(bandwidths), max(int(spread.steps.max()) for spread in spreads)
    scale = lcm(*(spread.share.denominator for spread in spreads))
    carried = np.zeros((steps, nodes * nodes), dtype=np.int64)
    for spread in spreads:
        links = spread.sources * nodes + spread.targets
        np.add.at(carried, (spread.steps - 1, links), int(spread.share * scale))
    return [_fullest(row.reshape(nodes, nodes), bandwidths) / scale for row in carried]


def _fullest(carried: Indices, bandwidths: Indices) -> Fraction:
    """The largest ratio, compared exactly among the fullest links of each bandwidth."""
    kinds = [int(value) for value in np.unique(bandwidths) if value]
    return max(Fraction(int(carried[bandwidths == kind].max()), kind) for kind in kinds)
