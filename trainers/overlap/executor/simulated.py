"""A plan in the simulator: functions run one by one in the order in which the simulated streams come to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from trainers.overlap.interference import InterferenceTable
from trainers.overlap.operations import OperationGraph
from trainers.overlap.plan import Launch, OverlapPlan
from trainers.overlap.simulator import Device, Spans
from trainers.overlap.times import Times


@dataclass(frozen=True)
class SimulatedStreams:
    """Streams of a device with these times and this interference."""

    times: Times
    table: InterferenceTable

    def execute(
        self,
        graph: OperationGraph,
        plan: OverlapPlan,
        functions: Mapping[str, Callable[[], None]],
        iterations: int = 1,
    ) -> Spans:
        """Run the plan for so many iterations; simulated seconds at which each operation began and ended."""
        spans = self._in_turn(plan, iterations) if plan.mode == "serial" else self._beside(graph, plan, iterations)
        for _, name in sorted(spans, key=lambda launch: spans[launch]):
            functions[name]()
        return spans

    def _beside(self, graph: OperationGraph, plan: OverlapPlan, iterations: int) -> Spans:
        return Device(graph, self.times, self.table).simulate(plan.launches(iterations), plan.shares)

    def _in_turn(self, plan: OverlapPlan, iterations: int) -> Spans:
        spans: dict[Launch, tuple[float, float]] = {}
        now = 0.0
        for launch in ((turn, name) for turn in range(iterations) for name in plan.order):
            spans[launch] = now, now + self.times[launch[1]]
            now = spans[launch][1]
        return spans
