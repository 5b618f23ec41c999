"""When operations start within a periodic schedule, and the order in which each stream launches them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trainers.overlap.operations import OperationGraph, Resource
from trainers.overlap.plan import Launch

IN_FLIGHT = 2
"""Iterations that may be under way at a time: one begins when the last but one has ended."""


class Needs:
    """What must have ended before an operation of an iteration starts."""

    def __init__(self, graph: OperationGraph) -> None:
        read = {source for operation in graph.operations for source in operation.inputs}
        self._graph = graph
        self._last = [name for name in graph.names if name not in read]

    def of(self, launch: Launch) -> list[Launch]:
        """Inputs, operations of the iteration before, and for the first operations the end of one long before."""
        turn, name = launch
        operation = self._graph[name]
        before = [(turn - 1, source) for source in operation.after] if turn else []
        room = [(turn - IN_FLIGHT, last) for last in self._last] if turn >= IN_FLIGHT and not operation.inputs else []
        return [(turn, source) for source in operation.inputs] + before + room

    def table(self, iterations: int) -> tuple[dict[Launch, int], dict[Launch, list[Launch]]]:
        """For each operation of so many iterations: how many it waits for, and which wait for it."""
        missing: dict[Launch, int] = {}
        readers: dict[Launch, list[Launch]] = {}
        for launch in ((turn, name) for turn in range(iterations) for name in self._graph.names):
            needs = set(self.of(launch))
            missing[launch] = len(needs)
            for need in needs:
                readers.setdefault(need, []).append(launch)
        return missing, readers


@dataclass(frozen=True)
class Schedule:
    """Seconds at which each operation starts since its iteration began, and from one iteration to the next.

    An operation that starts later than the period runs beside the next iteration.
    """

    starts: Mapping[str, float]
    period: float
    how: str
    """What found it."""

    def launches(self, graph: OperationGraph, iterations: int) -> dict[Resource, list[Launch]]:
        """What each stream launches, in order, for so many iterations."""

        def due(launch: Launch) -> tuple[float, int]:
            return round(launch[0] + self.starts[launch[1]] / period, 9), launch[0]

        place, period = graph.order(), self.period or 1.0
        return {
            resource: sorted(
                ((turn, name) for turn in range(iterations) for name in place if graph[name].resource == resource),
                key=due,
            )
            for resource in graph.resources
        }
