"""Which operations must come before which, within an iteration and from one to the next."""

from __future__ import annotations

from dataclasses import dataclass

from trainers.overlap.operations import OperationGraph


@dataclass(frozen=True)
class Ancestors:
    """For each operation: those of its iteration, and of the one before, that must have ended before it starts."""

    same: dict[str, frozenset[str]]
    before: dict[str, frozenset[str]]


def ancestors(graph: OperationGraph) -> Ancestors:
    """Follow inputs, and at most one step from an iteration to the one before."""
    same: dict[str, frozenset[str]] = {}
    before: dict[str, frozenset[str]] = {}
    for name in graph.order():
        inputs = graph[name].inputs
        same[name] = frozenset(inputs).union(*(same[source] for source in inputs))
    for name in graph.order():
        after = graph[name].after
        direct = frozenset(after).union(*(same[source] for source in after))
        before[name] = direct.union(*(before[source] for source in graph[name].inputs))
    return Ancestors(same, before)
