"""Plans on CUDA streams: simulated ones, which run in any order that events allow, and real ones if there are any."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from overlap_graphs import random_graph, training_step
from simulated_device import SimulatedDevice

from trainers.overlap.executor.cuda_streams import execute, in_order
from trainers.overlap.interference import PUBLISHED, WAITING
from trainers.overlap.operations import Operation, OperationGraph, Resource
from trainers.overlap.plan import OverlapPlan
from trainers.overlap.schedule import Needs
from trainers.overlap.search import search, serial_plan


def run(graph: OperationGraph, plan: OverlapPlan, iterations: int, seed: int) -> tuple[list[str], SimulatedDevice]:
    device = SimulatedDevice(seed)
    functions = {name: (lambda name=name: device.launch(name)) for name in graph.names}
    spans = execute(graph, plan, functions, iterations, device)
    assert len(spans) == iterations * len(graph)
    assert all(begin < end for begin, end in spans.values())
    needs = Needs(graph)
    for launch in spans:
        assert all(spans[need][1] <= spans[launch][0] for need in needs.of(launch)), launch
    return device.ran, device


@given(seed=st.integers(0, 10_000), size=st.integers(1, 7), iterations=st.integers(1, 4))
@settings(max_examples=5)
def test_whatever_runs_first_nothing_starts_before_what_it_waits_for(seed: int, size: int, iterations: int) -> None:
    graph, times = random_graph(seed, size)
    plan = search(graph, times, PUBLISHED, seconds=1)
    ran, _ = run(graph, plan, iterations, seed)
    assert sorted(ran) == sorted(graph.names * iterations)


def test_the_order_on_a_stream_is_the_planned_one() -> None:
    graph, times = training_step(4, 1.0, 1.0, 0.02)
    plan = search(graph, times, WAITING, seconds=2)
    ran, _ = run(graph, plan, 1, seed=1)
    for names in plan.streams.values():
        assert tuple(name for name in ran if name in names) == names


def test_one_after_another_takes_one_stream() -> None:
    graph, times = random_graph(5, 6)
    ran, _ = run(graph, serial_plan(graph, times), 2, seed=2)
    assert ran == [*graph.order(), *graph.order()]


def test_the_host_enqueues_nothing_before_what_it_waits_for() -> None:
    graph, times = training_step(5, 1.0, 0.7, 0.1)
    launches = in_order(search(graph, times, WAITING, seconds=2), 3)
    place = {launch: index for index, launch in enumerate(launches)}
    needs = Needs(graph)
    assert all(place[need] < place[launch] for launch in launches for need in needs.of(launch))


def test_a_function_that_fails_ends_the_run() -> None:
    graph = OperationGraph([Operation("mm", Resource.COMPUTE)], 1)

    def fail() -> None:
        raise RuntimeError("no kernel for this")

    with pytest.raises(RuntimeError, match="no kernel for this"):
        execute(graph, serial_plan(graph, {"mm": 1.0}), {"mm": fail}, device=SimulatedDevice(0))


def test_on_a_real_device_products_and_copies_give_what_they_give_alone() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    a = torch.randn(512, 512, device="cuda")
    out: dict[str, Any] = {}
    graph = OperationGraph(
        [
            Operation("mm", Resource.COMPUTE),
            Operation("copy", Resource.MEMORY),
            Operation("add", Resource.COMPUTE, ("mm", "copy")),
        ],
        1,
    )
    functions = {
        "mm": lambda: out.update(mm=a @ a),
        "copy": lambda: out.update(copy=a.clone()),
        "add": lambda: out.update(add=out["mm"] + out["copy"]),
    }
    plan = search(graph, {"mm": 1e-3, "copy": 1e-3, "add": 1e-4}, PUBLISHED, seconds=1)
    execute(graph, plan, functions, iterations=3)
    assert torch.equal(out["add"], a @ a + a)
