"""What each part of the method is worth: the same layer one after another, only cut, overlapped, and with offload.

The definitions are NanoFlow's (arXiv 2408.12757, section 6.4); all modes have the same operations' times.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from trainers.overlap.interference import Curve, InterferenceTable
from trainers.overlap.layer_search import LayerSearch
from trainers.overlap.operations import Operation, OperationGraph, Resource
from trainers.overlap.search import search
from trainers.overlap.serving import KQV, Pipeline


class Mode(StrEnum):
    """What is switched on."""

    SERIAL = "one after another"
    NANO_ONLY = "cut, one after another"
    FULL = "overlapped"
    OFFLOAD = "overlapped, with offload"


@dataclass(frozen=True)
class Offload:
    """Copies of new keys and values to the host, after each KQV. seconds: of a whole batch's; curve: their R → P."""

    seconds: float
    curve: Curve

    def added(self, graph: OperationGraph) -> OperationGraph:
        """The graph with a copy after each piece of KQV."""
        pieces = [each for each in graph.operations if each.family == KQV]
        copies = (
            Operation(each.name.replace(KQV, "offload", 1), Resource.HOST, (each.name,), each.tokens) for each in pieces
        )
        return OperationGraph((*graph.operations, *copies), graph.batch)

    def times(self, graph: OperationGraph) -> dict[str, float]:
        """Seconds of each copy, by its tokens."""
        ranges = {name: graph.range_of(name) for name in graph.on(Resource.HOST)}
        return {name: self.seconds * (end - begin) / graph.batch for name, (begin, end) in ranges.items()}


def ablation(layer: LayerSearch, pipeline: Pipeline, offload: Offload, seconds: float = 30.0) -> dict[Mode, float]:
    """Predicted seconds a layer in every mode; `seconds` is for each search."""
    full = layer.planned(pipeline, seconds=seconds)
    cut = layer.times_of(full.graph)
    graph = offload.added(full.graph)
    table = InterferenceTable({**layer.table.curves, Resource.HOST: offload.curve})
    with_offload = search(graph, cut | offload.times(graph), table, seconds=seconds)
    return {
        Mode.SERIAL: full.plan.serial_seconds,
        Mode.NANO_ONLY: sum(cut.values()),
        Mode.FULL: full.plan.period_seconds,
        Mode.OFFLOAD: with_offload.period_seconds,
    }
