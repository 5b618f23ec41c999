"""Times of nano-operations from those of whole ones."""

from __future__ import annotations

from collections.abc import Mapping

from trainers.overlap.operations import OperationGraph, Resource

Times = Mapping[str, float]
"""Seconds of each operation alone, with the whole device."""


def nano_times(graph: OperationGraph, whole: OperationGraph, times: Times, inflation: float = 0.0) -> dict[str, float]:
    """Seconds of every nano-operation of `graph`: its part by tokens of its family's time in `whole`.

    inflation: how much longer compute takes when its operation is cut, since weights are read again and tiles are
    smaller (NanoFlow's ablation: nano-batches alone cost 13.2 %).
    """

    def seconds(name: str) -> float:
        operation = graph[name]
        all_tokens = _tokens(whole, operation.family) if operation.family in whole.names else whole.batch
        part = _tokens(graph, name) / all_tokens
        slower = 1 + inflation if part < 1 and operation.resource == Resource.COMPUTE else 1
        return times[operation.family] * part * slower

    return {name: seconds(name) for name in graph.names}


def _tokens(graph: OperationGraph, name: str) -> int:
    begin, end = graph.range_of(name)
    return end - begin
