"""The shortest period of a graph by mixed-integer programming, with a bound that tells how short any could be.

NanoFlow's stage I (arXiv 2408.12757, section 4.1.3) as a cyclic schedule. Times are counted in periods. With x the
start and f = 1 / period to be maximised, "b starts when a has ended" is x_b ≥ x_a + t_a·f, and "b of the iteration
after" is x_b + 1 ≥ x_a + t_a·f: linear in both. For two operations of one stream an integer w says which b comes
between two a: x_b + w ≥ x_a + t_a·f and x_a + 1 ≥ x_b + w + t_b·f. No large constants are needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, count
from math import inf

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from trainers.overlap.operations import OperationGraph
from trainers.overlap.paths import ancestors
from trainers.overlap.schedule import IN_FLIGHT, Schedule
from trainers.overlap.times import Times

Vector = NDArray[np.float64]

_LAPS = IN_FLIGHT - 1
"""Iterations by which an operation may start later than its own."""

_INFEASIBLE = 2  # scipy's status: nothing is shorter than the incumbent


@dataclass(frozen=True)
class Optimum:
    """The schedule found, None if none is shorter than the incumbent, and the least period that any can have."""

    schedule: Schedule | None
    bound: float
    binaries: int


def shortest_period(
    graph: OperationGraph,
    times: Times,
    *,
    periodic: bool = True,
    incumbent: float = inf,
    gap: float = 0.003,
    seconds: float = 30.0,
) -> Optimum:
    """Search for a period below `incumbent`, until the best is proved within `gap` or `seconds` are up.

    periodic: one iteration may begin before the last has ended; otherwise the period is the time of one by itself.
    """
    return _Model(graph, times, periodic).solve(incumbent, gap, seconds)


@dataclass(frozen=True)
class Rivals:
    """Two operations of one stream, and the least and greatest w that their dependencies allow."""

    first: str
    second: str
    low: int
    high: int

    @property
    def free(self) -> bool:
        """Whether their order is to be chosen."""
        return self.low < self.high


class _Model:
    """Columns: x of each operation, f, w of each pair. Times are in units of the busiest stream's, so that f ≤ 1."""

    def __init__(self, graph: OperationGraph, times: Times, periodic: bool) -> None:
        self._graph, self._periodic = graph, periodic
        self._unit = max(sum(times[name] for name in graph.on(each)) for each in graph.resources)
        self._times = {name: times[name] / self._unit for name in graph.names}
        self._column = {name: place for place, name in enumerate(graph.names)}
        self._speed = len(graph)
        self._pairs = list(rivals(graph, periodic))

    def solve(self, incumbent: float, gap: float, seconds: float) -> Optimum:
        rows, sides = zip(*self._constraints(), strict=True)
        objective = np.zeros(self._width)
        objective[self._speed] = -1
        result = milp(
            objective,
            constraints=LinearConstraint(np.array(rows), np.array(sides), np.inf),
            bounds=self._bounds(incumbent),
            integrality=np.arange(self._width) > self._speed,
            options={"time_limit": seconds, "mip_rel_gap": gap},
        )
        binaries = sum(pair.free for pair in self._pairs)
        if result.x is None:
            bound = incumbent if result.status == _INFEASIBLE else self._unit
            return Optimum(None, bound, binaries)
        best = result.fun if result.mip_dual_bound is None else result.mip_dual_bound  # None where nothing is to choose
        return Optimum(self._schedule(result.x), self._unit / -best, binaries)

    @property
    def _width(self) -> int:
        return self._speed + 1 + len(self._pairs)

    def _bounds(self, incumbent: float) -> Bounds:
        low, high = np.zeros(self._width), np.full(self._width, 1.0 + _LAPS if self._periodic else 1.0)
        low[self._speed], high[self._speed] = self._unit / incumbent * (1 - 1e-9), 1
        low[self._speed + 1 :] = [pair.low for pair in self._pairs]
        high[self._speed + 1 :] = [pair.high for pair in self._pairs]
        return Bounds(low, high)

    def _constraints(self) -> Iterator[tuple[Vector, float]]:
        """Rows and what they must reach at least."""
        for operation in self._graph.operations:
            for source in operation.inputs:
                yield self._later(source, operation.name), 0
            for source in operation.after if self._periodic else ():
                yield self._later(source, operation.name), -1
            ended = self._row({self._column[operation.name]: -1, self._speed: -self._times[operation.name]})
            yield ended, -1 - _LAPS if self._periodic else -1
        for column, pair in zip(count(self._speed + 1), self._pairs, strict=False):
            yield self._later(pair.first, pair.second) + self._row({column: 1}), 0
            yield self._later(pair.second, pair.first) - self._row({column: 1}), -1

    def _later(self, first: str, second: str) -> Vector:
        """x_second - x_first - t_first·f."""
        row = self._row({self._speed: -self._times[first]})
        row[self._column[second]] += 1
        row[self._column[first]] -= 1
        return row

    def _row(self, values: dict[int, float]) -> Vector:
        row = np.zeros(self._width)
        row[list(values)] = list(values.values())
        return row

    def _schedule(self, x: Vector) -> Schedule:
        period = self._unit / x[self._speed]
        return Schedule({name: float(x[self._column[name]] * period) for name in self._graph.names}, period, "exact")


def rivals(graph: OperationGraph, periodic: bool) -> Iterator[Rivals]:
    """All pairs that share a stream. A way from one to the other, in its iteration or the next, narrows w."""
    ways = ancestors(graph)
    for resource in graph.resources:
        for one, other in combinations(graph.on(resource), 2):
            low = 1 if other in ways.same[one] else 0 if not periodic or other in ways.before[one] else -_LAPS
            high = 0 if one in ways.same[other] else 1 if not periodic or one in ways.before[other] else 1 + _LAPS
            yield Rivals(one, other, low, high)
