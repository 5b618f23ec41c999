"""What every way to run a plan must keep to, and that all of them give the same result."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from overlap_graphs import random_graph, training_step
from simulated_device import SimulatedDevice

from trainers.overlap.executor import cpu_threads, cuda_streams
from trainers.overlap.executor.simulated import SimulatedStreams
from trainers.overlap.interference import WAITING
from trainers.overlap.operations import OperationGraph
from trainers.overlap.plan import OverlapPlan
from trainers.overlap.schedule import Needs
from trainers.overlap.search import search, serial_plan

Spans = dict[tuple[int, str], tuple[float, float]]
Functions = dict[str, Callable[[], None]]


def in_simulator(graph: OperationGraph, plan: OverlapPlan, functions: Functions, times: Any, iterations: int) -> Spans:
    return SimulatedStreams(times, WAITING).execute(graph, plan, functions, iterations)


def on_streams(graph: OperationGraph, plan: OverlapPlan, functions: Functions, times: Any, iterations: int) -> Spans:
    device = SimulatedDevice(seed=len(graph))
    enqueued = {name: (lambda function=function: device.launch(function)) for name, function in functions.items()}
    return cuda_streams.execute(graph, plan, enqueued, iterations, device)


def on_threads(graph: OperationGraph, plan: OverlapPlan, functions: Functions, times: Any, iterations: int) -> Spans:
    return cpu_threads.execute(graph, plan, functions, iterations)


BACKENDS = [in_simulator, on_streams, on_threads]


@pytest.fixture(params=["training", "random", "serial"])
def planned(request: pytest.FixtureRequest) -> tuple[OperationGraph, OverlapPlan, dict[str, float]]:
    graph, times = training_step(4, 1.0, 1.0, 0.05) if request.param == "training" else random_graph(11, 8)
    plan = serial_plan(graph, times) if request.param == "serial" else search(graph, times, WAITING, seconds=1)
    return graph, plan, times


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_operation_runs_once_an_iteration_and_after_what_it_waits_for(backend: Any, planned: Any) -> None:
    graph, plan, times = planned
    ran: list[str] = []
    functions = {name: (lambda name=name: ran.append(name)) for name in graph.names}
    spans = backend(graph, plan, functions, times, 3)
    assert sorted(ran) == sorted(graph.names * 3)
    needs = Needs(graph)
    for launch, (begin, end) in spans.items():
        assert begin <= end
        assert all(spans[need][1] <= begin for need in needs.of(launch))


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_result_is_that_of_one_after_another(backend: Any, planned: Any) -> None:
    """Each operation folds what it waits for into its value; any other order leaves something out."""
    graph, plan, times = planned
    results = []
    for way, how in ((backend, plan), (in_simulator, serial_plan(graph, times))):
        values: dict[tuple[int, str], int] = {}
        way(graph, how, {name: _folding(graph, name, values) for name in graph.names}, times, 3)
        results.append(values)
    assert len(results[0]) == 3 * len(graph)
    assert results[0] == results[1]


def _folding(graph: OperationGraph, name: str, values: dict[tuple[int, str], int]) -> Callable[[], None]:
    turns = count()

    def fold() -> None:
        turn = next(turns)
        needs = [(turn, source) for source in graph[name].inputs]
        needs += [(turn - 1, source) for source in (*graph[name].after, name)]
        values[turn, name] = (len(name) + sum(31 * values.get(need, 0) for need in needs)) % 1_000_003

    return fold


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_operation_that_fails_ends_the_run_with_its_reason(backend: Any, planned: Any) -> None:
    graph, plan, times = planned

    def fail() -> None:
        raise RuntimeError("out of paper")

    functions = {name: fail if name == graph.order()[-1] else (lambda: None) for name in graph.names}
    with pytest.raises(RuntimeError, match="out of paper"):
        backend(graph, plan, functions, times, 1)
