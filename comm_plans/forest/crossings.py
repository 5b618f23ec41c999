"""How often trees cross each kind of link, how often they may, and the price that keeps them from crowding one."""

from collections.abc import Iterable, Sequence

from comm_plans.forest.routes import Kind

CROWDED = 10.0
"""How many times dearer a crossing beyond the limit is than its share of the limit says."""


class Crossings:
    """Crossings of each orbit of links; `limits` is how many it can carry, `kinds` are the ways that will be asked for.

    `costs` tells for each way what one more use of it costs: how full its dearest orbit becomes, times its price.
    `work` counts the costs that were worked out.
    """

    def __init__(self, limits: Sequence[int], kinds: Iterable[Kind]) -> None:
        self._limits = limits
        self._used = [0] * len(limits)
        self._prices = [1.0] * len(limits)
        self.work = 0
        self._touching: list[list[Kind]] = [[] for _ in limits]
        self.costs: dict[Kind, float] = {}
        for kind in kinds:
            self.costs[kind] = self._cost(kind)
            for orbit in set(kind):
                self._touching[orbit].append(kind)

    def add(self, kind: Kind, times: int = 1) -> None:
        """Count `times` more uses of this way, or fewer where negative."""
        for orbit in kind:
            self._used[orbit] += times
        for orbit in set(kind):
            self.work += 1 + len(self._touching[orbit])
            for other in self._touching[orbit]:
                self.costs[other] = self._cost(other)

    def overflow(self) -> int:
        """Crossings beyond the limits."""
        return sum(max(0, used - limit) for used, limit in zip(self._used, self._limits, strict=True))

    def raise_prices(self) -> None:
        """Make orbits that are used beyond their limit dearer, the fuller the dearer."""
        for orbit, (used, limit) in enumerate(zip(self._used, self._limits, strict=True)):
            if used > limit:
                self._prices[orbit] *= 1.1 + 0.3 * min(1.0, (used - limit) / max(limit, 0.5))
        self.costs = {kind: self._cost(kind) for kind in self.costs}

    def _cost(self, kind: Kind) -> float:
        return max([self._orbit_cost(orbit, kind.count(orbit)) for orbit in kind])

    def _orbit_cost(self, orbit: int, times: int) -> float:
        used, limit = self._used[orbit] + times, self._limits[orbit]
        return used / max(limit, 0.5) * self._prices[orbit] * (CROWDED if used > limit else 1.0)
