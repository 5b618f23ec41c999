"""The search for a serving pipeline: where to cut a layer and in which form to sum, then order and shares.

As NanoFlow (arXiv 2408.12757, section 4.1.3): two nano-operations each to begin with; while compute idles, KQV,
attention and sums are cut further. A pipeline is judged by list schedules under interference; the winner is searched in
full. A workload that memory limits is left as it is: nano-operations would read its weights twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from time import monotonic

from trainers.overlap.improvement import Improvement
from trainers.overlap.interference import InterferenceTable
from trainers.overlap.list_schedule import RULES, list_schedule
from trainers.overlap.operations import OperationGraph, Resource
from trainers.overlap.plan import OverlapPlan
from trainers.overlap.search import search, serial_plan
from trainers.overlap.serving import Pipeline
from trainers.overlap.shares import COARSE_GRID
from trainers.overlap.simulator import Device
from trainers.overlap.times import Times, nano_times

STEP = 128
"""Tokens that cuts are multiples of, as kernels are profiled for."""

_PIECES = 4
"""Nano-operations of one operation at most: the time that cutting costs is measured for so many."""

_NOTABLE = 2e-3

_FORMS: tuple[tuple[int, ...], ...] = ((), (0,), (1,), (0, 1))


@dataclass(frozen=True)
class LayerPlan:
    """A plan of one layer; pipeline: None if it runs uncut, one operation after another."""

    pipeline: Pipeline | None
    graph: OperationGraph
    plan: OverlapPlan


@dataclass(frozen=True)
class LayerSearch:
    """What a layer's pipelines are judged by.

    whole: the layer uncut; times: seconds of its operations and, for the other form of the sums, of the all-gathers;
    inflation: how much longer a cut operation's compute takes.
    """

    whole: OperationGraph
    times: Times
    table: InterferenceTable
    inflation: float = 0.0

    def run(self, *, bound: Resource = Resource.COMPUTE, machine: str = "", seconds: float = 60.0) -> LayerPlan:
        """The plan of the shortest predicted period. bound: the resource that limits the workload."""
        deadline = monotonic() + seconds
        serial = LayerPlan(None, self.whole, serial_plan(self.whole, self.times, machine))
        if bound == Resource.MEMORY:
            return serial
        found = self.planned(self.best_pipeline(), machine, max(deadline - monotonic(), 1.0))
        return min(found, serial, key=lambda each: each.plan.period_seconds)

    def planned(self, pipeline: Pipeline, machine: str = "", seconds: float = 60.0) -> LayerPlan:
        """Order and shares for one pipeline, compared with the uncut layer."""
        graph = pipeline.graph(self.whole)
        plan = search(graph, self.times_of(graph), self.table, machine=machine, seconds=seconds)
        serial = serial_plan(self.whole, self.times).serial_seconds
        return LayerPlan(pipeline, graph, replace(plan, serial_seconds=serial))

    def times_of(self, graph: OperationGraph) -> dict[str, float]:
        """Seconds of the nano-operations of a pipeline's graph."""
        return nano_times(graph, self.whole, self.times, self.inflation)

    def best_pipeline(self) -> Pipeline:
        """Halves and forms first; then further cuts, as long as they help."""
        period, best = self._best(self._halves())
        while finer := list(self._finer(best)):
            promised, pipeline = self._best(finer)
            if promised > period * (1 - _NOTABLE):
                break
            period, best = promised, pipeline
        return best

    def _best(self, pipelines: Iterable[Pipeline]) -> tuple[float, Pipeline]:
        return min(((self._promise(each), each) for each in pipelines), key=lambda found: found[0])

    def _promise(self, pipeline: Pipeline) -> float:
        """The period of its best list schedule, with one share a resource."""
        graph = pipeline.graph(self.whole)
        times = self.times_of(graph)
        drafts = Improvement(Device(graph, times, self.table), periodic=True, deadline=0)
        found = (drafts.first(list_schedule(graph, times, rule, periodic=True), COARSE_GRID) for rule in RULES)
        return min(draft.period for draft in found if draft)

    def _halves(self) -> Iterator[Pipeline]:
        batch = self.whole.batch
        forms = _FORMS if Resource.NETWORK in self.whole.resources else _FORMS[:1]
        for eighths in (2, 3, 4, 5):
            half = max(batch * eighths // 8 // STEP * STEP, 1)
            yield from (Pipeline(batch, half, (), gather) for gather in forms)

    def _finer(self, pipeline: Pipeline) -> Iterator[Pipeline]:
        """One more cut, in the midst of a piece: of KQV and attention, or of the last sum."""
        for cut in _middles(pipeline, pipeline.attention):
            yield replace(pipeline, attention=tuple(sorted((*pipeline.attention, cut))))
        for cut in _middles(pipeline, pipeline.sums) if Resource.NETWORK in self.whole.resources else ():
            yield replace(pipeline, sums=tuple(sorted((*pipeline.sums, cut))))


def _middles(pipeline: Pipeline, cuts: tuple[int, ...]) -> Iterator[int]:
    bounds = sorted({0, pipeline.half, pipeline.batch, *cuts})
    if len(bounds) > _PIECES:
        return
    for begin, end in pairwise(bounds):
        if end - begin >= 2 * STEP:
            yield (begin + end) // 2 // STEP * STEP
