"""Schedules and searches: against brute force, against bounds, and on a training step."""

from __future__ import annotations

from itertools import permutations, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from overlap_graphs import random_graph, training_step

from trainers.errors import OverlapError
from trainers.overlap.cyclic import shortest_period
from trainers.overlap.interference import PUBLISHED, WAITING, InterferenceTable
from trainers.overlap.list_schedule import RULES, list_schedule
from trainers.overlap.operations import Operation, OperationGraph, Resource
from trainers.overlap.plan import OverlapPlan
from trainers.overlap.search import lower_bound, search
from trainers.overlap.simulator import Device

FREE = InterferenceTable({})


def brute_force(graph: OperationGraph, times: dict[str, float]) -> float:
    """The shortest time of one iteration over all orders of every stream."""
    device, best = Device(graph, times, FREE), float("inf")
    for orders in product(*(permutations(graph.on(resource)) for resource in graph.resources)):
        launches = {
            resource: [(0, name) for name in order] for resource, order in zip(graph.resources, orders, strict=True)
        }
        spans = device.simulate(launches, dict.fromkeys(graph.names, 1.0))
        if len(spans) == len(graph):
            best = min(best, max(end for _, end in spans.values()))
    return best


@pytest.mark.parametrize("seed", range(12))
def test_one_iteration_by_itself_is_as_short_as_brute_force_finds(seed: int) -> None:
    graph, times = random_graph(seed, 7)
    found = shortest_period(graph, times, periodic=False, gap=0)
    assert found.schedule
    assert found.schedule.period == pytest.approx(brute_force(graph, times))
    assert found.bound == pytest.approx(found.schedule.period)


def cyclic_brute_force(graph: OperationGraph, times: dict[str, float]) -> float:
    """The least whole period that some choice of starts, in whole seconds, allows (times are whole here)."""
    horizon = int(sum(times.values()))
    return next(period for period in range(int(lower_bound(graph, times)), horizon + 1) if _fits(graph, times, period))


def _fits(graph: OperationGraph, times: dict[str, float], period: int) -> bool:
    """Depth first over starts in two periods, with modulo reservation of every stream."""
    order = graph.order()

    def place(index: int, starts: dict[str, int]) -> bool:
        if index == len(order):
            return all(
                starts[each.name] + period >= starts[source] + times[source]
                for each in graph.operations
                for source in each.after
            )
        name = order[index]
        earliest = max((int(starts[source] + times[source]) for source in graph[name].inputs), default=0)
        return any(
            _free(graph, times, period, starts, name, start) and place(index + 1, {**starts, name: start})
            for start in range(earliest, 2 * period)
        )

    return place(0, {})


def _free(
    graph: OperationGraph, times: dict[str, float], period: int, starts: dict[str, int], name: str, start: int
) -> bool:
    for other, begun in starts.items():
        if graph[other].resource == graph[name].resource:
            gap = (start - begun) % period
            if gap < times[other] or period - gap < times[name]:
                return False
    return times[name] <= period


@pytest.mark.parametrize("seed", range(10))
def test_a_period_is_no_longer_than_the_least_whole_one(seed: int) -> None:
    graph, times = random_graph(seed, 5)
    found = shortest_period(graph, times, gap=0)
    assert found.schedule
    assert found.schedule.period <= cyclic_brute_force(graph, times) + 1e-6
    assert found.schedule.period >= lower_bound(graph, times) - 1e-6


@given(seed=st.integers(0, 10_000), size=st.integers(1, 9), periodic=st.booleans())
@settings(max_examples=40)
def test_list_schedules_keep_to_dependencies_and_are_never_below_the_bound(
    seed: int, size: int, periodic: bool
) -> None:
    graph, times = random_graph(seed, size)
    for rule in RULES:
        schedule = list_schedule(graph, times, rule, periodic)
        assert schedule.period >= lower_bound(graph, times) - 1e-9
        for each in graph.operations:
            assert all(
                schedule.starts[each.name] >= schedule.starts[source] + times[source] - 1e-9 for source in each.inputs
            )


@given(
    seed=st.integers(0, 10_000),
    size=st.integers(1, 8),
    periodic=st.booleans(),
    table=st.sampled_from([PUBLISHED, WAITING]),
)
@settings(max_examples=8, derandomize=True)
def test_no_plan_is_slower_than_one_after_another(
    seed: int, size: int, periodic: bool, table: InterferenceTable
) -> None:
    graph, times = random_graph(seed, size)
    plan = search(graph, times, table, periodic=periodic, seconds=2)
    assert lower_bound(graph, times) - 1e-9 <= plan.period_seconds <= plan.serial_seconds
    assert plan.serial_seconds == pytest.approx(sum(times.values()))
    assert OverlapPlan.from_json(plan.to_json()) == plan
    if plan.mode == "overlapped":
        confirm(graph, times, table, plan, periodic)


def confirm(
    graph: OperationGraph, times: dict[str, float], table: InterferenceTable, plan: OverlapPlan, periodic: bool
) -> None:
    """What the plan's launches come to when simulated anew is what it promises."""
    iterations = 25 if periodic else 1
    spans = Device(graph, times, table).simulate(plan.launches(iterations), plan.shares)
    assert len(spans) == iterations * len(graph)
    ends = [max(spans[turn, name][1] for name in graph.names) for turn in range(iterations)]
    took = (ends[-2] - ends[3]) / (iterations - 5) if periodic else ends[0]
    assert took == pytest.approx(plan.period_seconds, rel=0.08)  # iterations of loosely tied graphs differ a little


def test_the_same_search_gives_the_same_plan() -> None:
    graph, times = random_graph(3, 6)
    assert search(graph, times, PUBLISHED) == search(graph, times, PUBLISHED)


def test_nothing_is_gained_where_a_share_is_all_that_one_gets() -> None:
    """If every operation's speed is its share, overlap moves work about and saves nothing."""
    line = ((0.0, 0.0), (1.0, 1.0))
    table = InterferenceTable(dict.fromkeys((Resource.COMPUTE, Resource.MEMORY, Resource.NETWORK), line))
    for seed in range(4):
        graph, times = random_graph(seed, 6)
        assert search(graph, times, table, seconds=3).mode == "serial"


@pytest.mark.parametrize(("compute", "network"), [(1.0, 1.0), (1.0, 0.5), (0.5, 1.0)])
def test_a_training_step_hides_its_sums_behind_both_passes(compute: float, network: float) -> None:
    """All but what must be seen: the first block's sum and step stand between a backward pass and the next forward."""
    graph, times = training_step(6, compute, network, optimizer=0.02)
    plan = search(graph, times, WAITING, seconds=5)
    assert plan.mode == "overlapped"
    assert plan.period_seconds < 1.15 * max(6 * compute, 6 * network) + network
    confirm(graph, times, WAITING, plan, periodic=True)


def test_sums_that_the_next_pass_waits_for_overtake_those_that_can_wait() -> None:
    graph, times = training_step(6, 1.0, 1.0, optimizer=0.02)
    order = search(graph, times, WAITING, seconds=5).streams[Resource.NETWORK]
    assert order != tuple(f"reduce {block}" for block in reversed(range(6)))
    assert order.index("reduce 0") < len(order) - 1


def test_one_operation_stays_as_it_is() -> None:
    graph = OperationGraph([Operation("mm", Resource.COMPUTE)], 1)
    plan = search(graph, {"mm": 2.0}, PUBLISHED, machine="here")
    assert (plan.mode, plan.period_seconds, plan.machine) == ("serial", 2.0, "here")


@pytest.mark.parametrize("times", [{}, {"mm": -1.0}, {"mm": float("nan")}, {"mm": float("inf")}])
def test_times_that_make_no_sense_are_refused(times: dict[str, float]) -> None:
    graph = OperationGraph([Operation("mm", Resource.COMPUTE)], 1)
    with pytest.raises(OverlapError, match="no time for mm, or none that makes sense"):
        search(graph, times, PUBLISHED)


def test_the_example_of_the_page_runs() -> None:
    page = (Path(__file__).parents[3] / "docs" / "overlap.md").read_text()
    code = page.partition("```python\n")[2].partition("```")[0]
    found: dict[str, Any] = {}
    exec(code, found)
    assert found["plan"].mode in ("serial", "overlapped")
    assert OverlapPlan.from_json(found["plan"].to_json()) == found["plan"]
