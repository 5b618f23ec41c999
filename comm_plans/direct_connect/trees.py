"""Spreads as the trees of a plan: broadcast trees as they are, reduce trees run backwards."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from comm_plans.direct_connect.graphs import Indices
from comm_plans.direct_connect.spreads import Spread
from comm_plans.plan import Tree

Paths = tuple[tuple[int, ...], ...]


class TreeMaker:
    """Makes trees among `ranks` ranks with equal shards. Trees share the tuples that they have in common: a plan of
    1024 ranks has millions of edges on few links."""

    def __init__(self, links: Iterable[tuple[int, int]], ranks: int) -> None:
        self.ranks = ranks
        ordered = sorted(links)
        self.codes = np.array([source * ranks + target for source, target in ordered], dtype=np.int64)
        self.paths: NDArray[Any] = np.empty(len(ordered), dtype=object)
        self.paths[:] = ordered
        self.known_steps: dict[bytes, tuple[int, ...]] = {}

    def broadcasts(self, spreads: Iterable[Spread], first: int = 0) -> tuple[Tree, ...]:
        """Trees that send each shard from its root; the schedule's first step is the plan's step `first`."""
        return tuple(
            self._tree("broadcast", spread, self._paths(spread.sources, spread.targets), first - 1 + spread.steps)
            for spread in spreads
        )

    def reductions(self, spreads: Iterable[Spread], count: int) -> tuple[Tree, ...]:
        """Trees that add each shard up at its root: spreads on the reversed network, their `count` steps backwards."""
        return tuple(
            self._tree(
                "reduce",
                spread,
                self._paths(spread.targets[::-1], spread.sources[::-1]),
                count - spread.steps[::-1],
            )
            for spread in spreads
        )

    def _tree(self, operation: str, spread: Spread, paths: Paths, steps: Indices) -> Tree:
        start, share = Fraction(spread.root + spread.start) / self.ranks, spread.share / self.ranks
        return Tree(operation, spread.root, start, share, paths, self._shared(steps))

    def _paths(self, sources: Indices, targets: Indices) -> Paths:
        return tuple(self.paths[np.searchsorted(self.codes, sources * self.ranks + targets)].tolist())

    def _shared(self, steps: Indices) -> tuple[int, ...]:
        key = steps.tobytes()
        if key not in self.known_steps:
            self.known_steps[key] = tuple(steps.tolist())
        return self.known_steps[key]
