"""The search for a pipeline: structure, then shares, and always compared with one operation after another.

Candidates are list schedules by several rules and the exact optimum without interference (stage I of NanoFlow, arXiv
2408.12757, section 4.1.3); each gets shares (stage II), the best are made better under interference, and the shortest
wins. Running operations one after another, each with the whole device, is a candidate too: no plan is slower.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from math import inf
from time import monotonic

from trainers.errors import OverlapError
from trainers.overlap.cyclic import shortest_period
from trainers.overlap.improvement import Draft, Improvement
from trainers.overlap.interference import InterferenceTable
from trainers.overlap.list_schedule import RULES, list_schedule
from trainers.overlap.operations import OperationGraph, Resource
from trainers.overlap.plan import OverlapPlan
from trainers.overlap.schedule import Schedule
from trainers.overlap.simulator import Device
from trainers.overlap.times import Times

_GAP = 0.005
"""What is proved within this part of the bound counts as optimal."""

_TRIED = 3
"""Drafts that are made better."""

_WORTH_WHILE = 1e-3
"""Part of the serial time that overlapping must save: below it the plain order is kept."""


def search(
    graph: OperationGraph,
    times: Times,
    table: InterferenceTable,
    *,
    machine: str = "",
    periodic: bool = True,
    seconds: float = 20.0,
) -> OverlapPlan:
    """The plan of the shortest predicted period.

    times: seconds of each operation alone with the whole device. periodic: iterations follow one another without a
    pause; otherwise an iteration is planned by itself. seconds: when to stop; a search that ends by itself always gives
    the same plan, one that was stopped depends on the machine's speed: let one rank search and share what it found.
    """
    _check(graph, times)
    serial = serial_plan(graph, times, machine)
    if not lower_bound(graph, times):
        return serial
    device, begun = Device(graph, times, table), monotonic()
    improvement = Improvement(device, periodic, begun + seconds)
    found = structures(graph, times, periodic, begun + seconds / 2)
    drafts = [draft for each in found.schedules if (draft := improvement.first(each))]
    settled = filter(None, map(improvement.settled, [_best(improvement, drafts, found.bound), *drafts]))
    best = min(settled, key=lambda draft: draft.period, default=None)
    if best is None or best.period > serial.period_seconds * (1 - _WORTH_WHILE):
        return serial
    return _plan(device, best, serial)


def _best(improvement: Improvement, drafts: list[Draft], bound: float) -> Draft:
    """The most promising drafts made better, until one is as good as any can be."""
    ranked = sorted(drafts, key=lambda draft: draft.period)
    best = ranked[0]
    for draft in ranked[:_TRIED]:
        if best.period > bound * (1 + _GAP):
            best = min(best, improvement.improved(draft), key=lambda each: each.period)
    return best


@dataclass(frozen=True)
class Structures:
    """Schedules without interference, and the least period that any plan can have."""

    schedules: list[Schedule]
    bound: float


def structures(graph: OperationGraph, times: Times, periodic: bool, deadline: float) -> Structures:
    """One schedule a rule, and the exact optimum where no rule has found it."""
    listed = [list_schedule(graph, times, rule, periodic) for rule in RULES]
    shortest, bound, left = min(each.period for each in listed), lower_bound(graph, times), deadline - monotonic()
    if left <= 0 or shortest <= bound * (1 + _GAP):
        return Structures(listed, bound)
    exact = shortest_period(graph, times, periodic=periodic, incumbent=shortest, gap=_GAP, seconds=left)
    return Structures([*listed, exact.schedule] if exact.schedule else listed, max(exact.bound, bound))


def lower_bound(graph: OperationGraph, times: Times) -> float:
    """No period is shorter than its busiest stream."""
    return max(sum(times[name] for name in graph.on(resource)) for resource in graph.resources)


def serial_plan(graph: OperationGraph, times: Times, machine: str = "") -> OverlapPlan:
    """One operation after another, each with the whole device."""
    order = graph.order()
    ends = dict(zip(order, accumulate(times[name] for name in order), strict=True))
    starts = {name: ends[name] - times[name] for name in order}
    total = sum(times[name] for name in order)
    streams = _streams(graph, starts)
    return OverlapPlan("serial", graph.digest, machine, streams, dict.fromkeys(order, 1.0), starts, ends, total, total)


def _plan(device: Device, draft: Draft, serial: OverlapPlan) -> OverlapPlan:
    steady = draft.steady
    return replace(
        serial,
        mode="overlapped",
        streams=_streams(device.graph, steady.starts),
        shares={name: _share(device, draft, name) for name in device.graph.names},
        starts=steady.starts,
        ends=steady.ends,
        period_seconds=steady.period,
    )


def _share(device: Device, draft: Draft, name: str) -> float:
    """As searched; for compute what the others left it, on average."""
    if device.graph[name].resource != Resource.COMPUTE:
        return draft.shares[name]
    seconds = draft.steady.ends[name] - draft.steady.starts[name]
    return min(device.times[name] / seconds, 1.0) if seconds else 1.0


def _streams(graph: OperationGraph, starts: Mapping[str, float]) -> dict[Resource, tuple[str, ...]]:
    place = {name: index for index, name in enumerate(graph.order())}
    return {
        resource: tuple(sorted(graph.on(resource), key=lambda name: (starts[name], place[name])))
        for resource in graph.resources
    }


def _check(graph: OperationGraph, times: Times) -> None:
    for name in graph.names:
        if not 0 <= times.get(name, -1) < inf:
            raise OverlapError(f"The profile has no time for {name}, or none that makes sense; profile this graph.")
