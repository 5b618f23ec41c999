"""A plan on the processor: a persistent worker a resource, each with its share of threads, and events between them.

Workers launch operations in the plan's order, each once what it waits for is done. The first exception ends all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from threading import Event
from time import perf_counter
from types import TracebackType
from typing import Self

import torch

from trainers.errors import OverlapError
from trainers.overlap.executor.worker import Worker
from trainers.overlap.operations import OperationGraph, Resource
from trainers.overlap.plan import Launch, OverlapPlan
from trainers.overlap.schedule import Needs

_PERIOD = 0.1  # seconds between two looks for a failure


class CpuThreads:
    """Workers for one graph and plan, to be used in a block; `run` may be called again and again.

    threads: of the whole process; a resource has at least one of them, else the largest share of its operations.
    """

    def __init__(self, graph: OperationGraph, plan: OverlapPlan, threads: int | None = None) -> None:
        self._graph, self._plan, self._needs = graph, plan, Needs(graph)
        self._failure: BaseException | None = None
        self._spans: dict[Launch, tuple[float, float]] = {}
        whole = threads or torch.get_num_threads()
        self._workers = {each: Worker(str(each), self._share(each, whole), self._failed) for each in graph.resources}

    def run(
        self, functions: Mapping[str, Callable[[], None]], iterations: int = 1
    ) -> dict[Launch, tuple[float, float]]:
        """Run every operation of so many iterations; when each began and ended, in seconds of this process's clock.

        Raises what an operation raised, once all workers have stopped; then no further run is possible.
        """
        if self._failure:
            raise OverlapError("The workers of this plan have ended with an error; make new ones.") from self._failure
        self._spans = {}
        launches = self._plan.launches(iterations)
        self._done = {launch: Event() for queue in launches.values() for launch in queue}
        if self._plan.mode == "serial":
            self._in_turn(functions, iterations)
        else:
            self._side_by_side(functions, launches)
        for launch in self._done:
            self._wait(launch)
        return self._spans

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers.values():
            worker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _in_turn(self, functions: Mapping[str, Callable[[], None]], iterations: int) -> None:
        """In the calling thread, which has all threads for itself."""
        for turn in range(iterations):
            for name in self._plan.order:
                self._do((turn, name), functions[name])

    def _side_by_side(
        self, functions: Mapping[str, Callable[[], None]], launches: Mapping[Resource, list[Launch]]
    ) -> None:
        for resource, queue in launches.items():
            for launch in queue:
                self._workers[resource].put(partial(self._when_due, launch, functions[launch[1]]))

    def _when_due(self, launch: Launch, function: Callable[[], None]) -> None:
        for need in self._needs.of(launch):
            self._wait(need)
        self._do(launch, function)

    def _do(self, launch: Launch, function: Callable[[], None]) -> None:
        begun = perf_counter()
        function()
        self._spans[launch] = begun, perf_counter()
        self._done[launch].set()

    def _wait(self, launch: Launch) -> None:
        """Until an operation is done, or one has failed: raises that one's exception."""
        while not self._done[launch].wait(_PERIOD):
            if self._failure:
                raise self._failure

    def _failed(self, error: BaseException) -> None:
        self._failure = self._failure or error

    def _share(self, resource: Resource, whole: int) -> int:
        share = max(self._plan.shares[name] for name in self._graph.on(resource))
        return max(1, round(share * whole))


def execute(
    graph: OperationGraph, plan: OverlapPlan, functions: Mapping[str, Callable[[], None]], iterations: int = 1
) -> dict[Launch, tuple[float, float]]:
    """Run the plan for so many iterations; seconds at which each operation began and ended, from the first on."""
    with CpuThreads(graph, plan) as threads:
        spans = threads.run(functions, iterations)
    origin = min(begun for begun, _ in spans.values())
    return {launch: (begun - origin, ended - origin) for launch, (begun, ended) in spans.items()}
