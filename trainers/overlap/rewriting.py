"""Graphs made of graphs: operations cut by tokens into nano-operations, and an iteration repeated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from trainers.errors import OverlapError
from trainers.overlap.operations import Operation, OperationGraph, Range


def split(graph: OperationGraph, cuts: Mapping[str, Sequence[int]]) -> OperationGraph:
    """Cut each named operation at the given tokens: `KQV` at [256, 640] is KQV[0:256], KQV[256:640], KQV[640:2048].

    Two nano-operations depend on each other if their parents do and their ranges intersect (NanoFlow, section 4.1).
    Raises OverlapError for an operation that is not there or not duplicable, and for a cut outside its range.
    """
    pieces = {name: [graph[name].tokens] for name in graph.names} | {
        name: _ranges(graph, name, at) for name, at in cuts.items()
    }
    whole = {name: len(ranges) == 1 for name, ranges in pieces.items()}

    def named(name: str, tokens: Range | None) -> str:
        return name if whole[name] else f"{name}[{tokens[0]}:{tokens[1]}]" if tokens else name

    def meeting(names: Iterable[str], tokens: Range) -> tuple[str, ...]:
        return tuple(
            named(name, piece)
            for name in names
            for piece in pieces[name]
            if _intersect(piece or (0, graph.batch), tokens)
        )

    return OperationGraph(
        (
            replace(
                operation,
                name=named(operation.name, piece),
                tokens=piece,
                inputs=meeting(operation.inputs, piece or (0, graph.batch)),
                after=meeting(operation.after, piece or (0, graph.batch)),
            )
            for operation in graph.operations
            for piece in pieces[operation.name]
        ),
        graph.batch,
    )


def repeat(graph: OperationGraph, times: int) -> OperationGraph:
    """One iteration that is `times` of the graph's: operation `KQV` of the third is `2.KQV`, and `after` joins them."""
    return OperationGraph(
        (_repeated(operation, turn, times) for turn in range(times) for operation in graph.operations), graph.batch
    )


def _repeated(operation: Operation, turn: int, times: int) -> Operation:
    inside = tuple(f"{turn}.{name}" for name in operation.inputs)
    before = tuple(f"{(turn - 1) % times}.{name}" for name in operation.after)
    return replace(
        operation,
        name=f"{turn}.{operation.name}",
        inputs=inside + before if turn else inside,
        after=() if turn else before,
    )


def _ranges(graph: OperationGraph, name: str, at: Sequence[int]) -> list[Range | None]:
    if name not in graph.names:
        raise OverlapError(f"There is no operation {name} to cut; the graph has {', '.join(graph.names)}.")
    if at and not graph[name].duplicable:
        raise OverlapError(f"{name} can't be cut by tokens; leave it out of the cuts.")
    begin, end = graph.range_of(name)
    bounds = [begin, *sorted(set(at)), end]
    if any(low >= high for low, high in pairwise(bounds)):
        raise OverlapError(f"{name} is cut at {list(at)}, outside its tokens {begin}:{end}; cut it within.")
    return list(pairwise(bounds))


def _intersect(one: Range, other: Range) -> bool:
    return one[0] < other[1] and other[0] < one[1]
