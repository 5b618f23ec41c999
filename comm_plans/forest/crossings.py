"""How often trees cross each kind of link, how often they may, and the price that keeps them from crowding one."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from comm_plans.forest.routes import Kind

Costs = NDArray[np.float64]

CROWDED = 10.0
"""How many times dearer a crossing beyond the limit is than its share of the limit says."""


class Crossings:
    """Crossings of each orbit of links: `limits` is how many it can carry. Ways are known by their place in `kinds`."""

    def __init__(self, limits: Sequence[int], kinds: Sequence[Kind]) -> None:
        # One more orbit, which never fills, pads ways of fewer links.
        self._limits = np.array([*limits, 2**62], np.float64)
        self._used = np.zeros(len(self._limits))
        self._prices = np.ones(len(self._limits))
        self._kinds = kinds
        self._orbits = np.full((len(kinds), max(map(len, kinds))), len(limits))
        for place, kind in enumerate(kinds):
            self._orbits[place, : len(kind)] = kind

    def add(self, kind: int, times: int) -> None:
        """Count `times` more uses of a way, or fewer where negative."""
        for orbit in self._kinds[kind]:
            self._used[orbit] += times

    def costs(self, times: int) -> Costs:
        """For each way what `times` more uses cost: how full its dearest orbit becomes, times its price."""
        used = self._used + times
        orbits = used / np.maximum(self._limits, 0.5) * self._prices * np.where(used > self._limits, CROWDED, 1.0)
        costs: Costs = orbits[self._orbits].max(axis=1)
        return costs

    def overflow(self) -> int:
        """Crossings beyond the limits."""
        return int(np.maximum(self._used - self._limits, 0).sum())

    def raise_prices(self) -> None:
        """Make orbits that are used beyond their limit dearer, the fuller the dearer."""
        excess = np.maximum(self._used - self._limits, 0) / np.maximum(self._limits, 0.5)
        self._prices *= np.where(excess > 0, 1.1 + 0.3 * np.minimum(1.0, excess), 1.0)
