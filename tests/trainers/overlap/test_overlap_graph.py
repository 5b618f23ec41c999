"""Graphs of operations: what they refuse, how they are cut and repeated."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainers.errors import OverlapError
from trainers.overlap.operations import Operation, OperationGraph, Resource
from trainers.overlap.rewriting import repeat, split

COMPUTE, MEMORY, NETWORK = Resource.COMPUTE, Resource.MEMORY, Resource.NETWORK


def chain(batch: int = 8) -> OperationGraph:
    """KQV → attention → sum, and the next layer's KQV waits for the sum."""
    return OperationGraph(
        [
            Operation("KQV", COMPUTE, duplicable=True, after=("sum",)),
            Operation("attention", MEMORY, inputs=("KQV",), duplicable=True),
            Operation("sum", NETWORK, inputs=("attention",), duplicable=True),
        ],
        batch,
    )


@pytest.mark.parametrize(
    ("operations", "sentence"),
    [
        (
            [Operation("a", COMPUTE, inputs=("b",)), Operation("b", COMPUTE, inputs=("a",))],
            r"wait for each other in a circle: (a → b → a|b → a → b); drop one of the inputs\.",
        ),
        ([Operation("a", COMPUTE, inputs=("a",))], "circle: a → a"),
        ([Operation("a", COMPUTE, inputs=("b",))], "a waits for b, which the graph lacks"),
        ([Operation("a", COMPUTE, after=("b",))], "a waits for b, which the graph lacks"),
        ([Operation("a", COMPUTE), Operation("a", MEMORY)], "Two operations are called a"),
        ([Operation("a", COMPUTE, tokens=(0, 9))], "a works on tokens 0:9, outside the batch 0:8"),
        ([Operation("a", COMPUTE, tokens=(-1, 2))], "outside the batch"),
        ([Operation("a", COMPUTE, tokens=(2, 2))], "outside the batch"),
        (
            [Operation("a[0:2]", COMPUTE, tokens=(0, 2)), Operation("a[4:8]", COMPUTE, tokens=(4, 8))],
            "The pieces of a leave out tokens 2:4",
        ),
        (
            [Operation("a[0:4]", COMPUTE, tokens=(0, 4)), Operation("a[2:8]", COMPUTE, tokens=(2, 8))],
            "The pieces of a work twice on tokens 2:4",
        ),
    ],
)
def test_a_graph_that_makes_no_sense_is_refused_in_a_sentence(operations: list[Operation], sentence: str) -> None:
    with pytest.raises(OverlapError, match=sentence) as caught:
        OperationGraph(operations, 8)
    assert "\n" not in str(caught.value)


def test_a_wait_for_the_iteration_before_is_no_circle() -> None:
    assert chain().order() == ("KQV", "attention", "sum")


def test_the_digest_knows_what_a_graph_says_and_not_how_it_was_written() -> None:
    graph = chain()
    assert OperationGraph(reversed(graph.operations), 8).digest == graph.digest
    assert chain(16).digest != graph.digest
    without = [Operation("KQV", COMPUTE), *graph.operations[1:]]
    assert OperationGraph(without, 8).digest != graph.digest


def test_nano_operations_depend_where_their_ranges_meet() -> None:
    graph = split(chain(), {"KQV": [2, 4], "sum": [4]})
    assert graph.names == ("KQV[0:2]", "KQV[2:4]", "KQV[4:8]", "attention", "sum[0:4]", "sum[4:8]")
    assert graph["attention"].inputs == ("KQV[0:2]", "KQV[2:4]", "KQV[4:8]")
    assert graph["KQV[2:4]"].after == ("sum[0:4]",)
    assert graph["KQV[4:8]"].after == ("sum[4:8]",)
    assert graph["sum[4:8]"].inputs == ("attention",)
    assert graph["sum[4:8]"].family == "sum"


cuts = st.lists(st.integers(1, 63), max_size=4, unique=True)


@given(one=cuts, other=cuts)
@settings(max_examples=30)
def test_pieces_meet_exactly_where_their_tokens_do(one: list[int], other: list[int]) -> None:
    graph = split(chain(64), {"KQV": one, "attention": other})
    for piece in (graph[name] for name in graph.names if graph[name].family == "attention"):
        begin, end = graph.range_of(piece.name)
        tokens = {token for name in piece.inputs for token in range(*graph.range_of(name))}
        assert set(range(begin, end)) <= tokens
        assert all(set(range(*graph.range_of(name))) & set(range(begin, end)) for name in piece.inputs)


@pytest.mark.parametrize(
    ("cut", "sentence"),
    [
        ({"KQV": [9]}, r"KQV is cut at \[9\], outside its tokens 0:8"),
        ({"KQV": [0]}, "outside its tokens"),
        ({"norm": [4]}, "There is no operation norm to cut; the graph has KQV, attention, sum"),
    ],
)
def test_a_cut_that_makes_no_sense_is_refused(cut: dict[str, list[int]], sentence: str) -> None:
    with pytest.raises(OverlapError, match=sentence):
        split(chain(), cut)


def test_what_can_not_be_cut_is_not() -> None:
    with pytest.raises(OverlapError, match="a can't be cut by tokens"):
        split(OperationGraph([Operation("a", COMPUTE)], 8), {"a": [4]})


def test_repeated_layers_wait_for_each_other_and_the_first_for_the_last() -> None:
    graph = repeat(chain(), 3)
    assert graph["1.KQV"].inputs == ("0.sum",)
    assert graph["0.KQV"].after == ("2.sum",)
    assert graph["2.attention"].inputs == ("2.KQV",)
    assert len(graph) == 9
    assert graph.order()[:4] == ("0.KQV", "0.attention", "0.sum", "1.KQV")
