"""Plans of overlapping: to JSON and back, launches over several iterations, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from trainers.errors import OverlapError
from trainers.overlap.operations import Operation, OperationGraph, Resource
from trainers.overlap.plan import OverlapPlan

GRAPH = OperationGraph([Operation("mm", Resource.COMPUTE), Operation("sum", Resource.NETWORK, inputs=("mm",))], 1)
PLAN = OverlapPlan(
    mode="overlapped",
    graph_digest=GRAPH.digest,
    machine="here",
    streams={Resource.COMPUTE: ("mm",), Resource.NETWORK: ("sum",)},
    shares={"mm": 1.0, "sum": 0.2},
    starts={"mm": 0.0, "sum": 2.0},
    ends={"mm": 2.0, "sum": 3.5},
    period_seconds=2.0,
    serial_seconds=3.5,
)


def test_json_and_back() -> None:
    assert OverlapPlan.from_json(PLAN.to_json()) == PLAN
    assert OverlapPlan.from_json(PLAN.to_json()).to_json() == PLAN.to_json()


def test_launches_of_several_iterations_follow_the_starts() -> None:
    assert PLAN.order == ("mm", "sum")
    assert PLAN.launches(2) == {
        Resource.COMPUTE: [(0, "mm"), (1, "mm")],
        Resource.NETWORK: [(0, "sum"), (1, "sum")],
    }
    late = replace(
        PLAN, streams={Resource.NETWORK: ("a", "b")}, starts={"a": 0.0, "b": 3.0}, ends={"a": 1, "b": 4}, shares={}
    )
    assert late.launches(3)[Resource.NETWORK] == [(0, "a"), (1, "a"), (0, "b"), (2, "a"), (1, "b"), (2, "b")]


def test_a_plan_for_something_else_is_refused() -> None:
    PLAN.check(GRAPH, "here")
    with pytest.raises(OverlapError, match="for another graph of operations"):
        PLAN.check(OperationGraph(GRAPH.operations, 2), "here")
    with pytest.raises(OverlapError, match=r"profile of another machine \(here\); profile this one \(there\)"):
        PLAN.check(GRAPH, "there")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"version": 2}, "has version 2, not 1"),
        ({"mode": "fast"}, "This is no plan of overlapping"),
        ({"streams": {"compute": ["mm"]}}, "its parts name different operations"),
        ({"streams": {"quantum": ["mm"]}}, "This is no plan"),
        ({"shares": {"mm": "all", "sum": 0.2}}, "no number"),
        ({"period_seconds": None}, "no number"),
        ({"surprise": 1}, "This is no plan"),
    ],
)
def test_damaged_json_is_refused_in_a_sentence(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(OverlapError, match=sentence) as caught:
        OverlapPlan.from_json(json.dumps(json.loads(PLAN.to_json()) | change))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{}", "7", "null"])
def test_text_that_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(OverlapError, match="This is no plan of overlapping"):
        OverlapPlan.from_json(text)
