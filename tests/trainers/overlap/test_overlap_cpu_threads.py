"""Plans on worker threads: the planned order on each stream, and one end for all."""

from __future__ import annotations

from threading import current_thread

import pytest
import torch
from overlap_graphs import random_graph, training_step

from trainers.errors import OverlapError
from trainers.overlap.executor.cpu_threads import CpuThreads, execute
from trainers.overlap.interference import PUBLISHED, WAITING
from trainers.overlap.operations import Operation, OperationGraph, Resource
from trainers.overlap.search import search, serial_plan


def test_each_stream_is_one_thread_that_keeps_the_planned_order() -> None:
    graph, times = training_step(4, 1.0, 1.0, 0.02)
    plan = search(graph, times, WAITING, seconds=2)
    assert plan.mode == "overlapped"
    ran: list[tuple[str, str]] = []
    functions = {name: (lambda name=name: ran.append((current_thread().name, name))) for name in graph.names}
    with CpuThreads(graph, plan) as threads:
        threads.run(functions)
        threads.run(functions)
    for resource, names in plan.streams.items():
        assert [name for thread, name in ran if thread == resource] == [*names, *names]


def test_a_serial_plan_runs_in_the_thread_that_asks() -> None:
    graph, times = random_graph(5, 6)
    ran: list[tuple[str, str]] = []
    functions = {name: (lambda name=name: ran.append((current_thread().name, name))) for name in graph.names}
    execute(graph, serial_plan(graph, times), functions, 2)
    assert ran == [(current_thread().name, name) for name in (*graph.order(), *graph.order())]


@pytest.mark.parametrize("failing", ["forward 1", "reduce 2", "optimizer 0"])
def test_an_exception_ends_all_workers_and_comes_out(failing: str) -> None:
    graph, times = training_step(4, 1.0, 1.0, 0.02)

    def fail() -> None:
        raise ArithmeticError(failing)

    functions = {name: (lambda: None) for name in graph.names} | {failing: fail}
    with CpuThreads(graph, search(graph, times, WAITING, seconds=2)) as threads:
        with pytest.raises(ArithmeticError, match=failing):
            threads.run(functions, 3)
        with pytest.raises(OverlapError, match="make new ones"):
            threads.run(functions)


def test_halves_of_a_batch_give_the_bits_of_the_whole() -> None:
    batch, weights = torch.randn(64, 32), torch.randn(2, 32, 32)
    hidden, result = torch.empty(64, 32), torch.empty(64, 32)

    def functions(begin: int, end: int) -> dict[str, object]:
        rows = slice(begin, end)
        return {
            f"first[{begin}:{end}]": lambda: torch.mm(batch[rows], weights[0], out=hidden[rows]),
            f"second[{begin}:{end}]": lambda: torch.mm(hidden[rows], weights[1], out=result[rows]),
        }

    halves = functions(0, 32) | functions(32, 64)
    graph = OperationGraph(
        [
            Operation(name, resource, inputs, (begin, end))
            for begin, end in ((0, 32), (32, 64))
            for name, resource, inputs in (
                (f"first[{begin}:{end}]", Resource.COMPUTE, ()),
                (f"second[{begin}:{end}]", Resource.MEMORY, (f"first[{begin}:{end}]",)),
            )
        ],
        64,
    )
    execute(graph, search(graph, dict.fromkeys(graph.names, 1.0), PUBLISHED, seconds=1), halves)
    assert torch.equal(result, torch.cat([batch[:32] @ weights[0] @ weights[1], batch[32:] @ weights[0] @ weights[1]]))
