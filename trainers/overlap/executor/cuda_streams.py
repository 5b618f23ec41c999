"""A plan on CUDA streams: one stream a resource, events between them, nothing waited for on the host until the end.

One host thread enqueues operations by their planned starts. A function enqueues its kernels on the current stream; how
many blocks they take is its own affair (`plan.shares` says how large a part is planned).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

from trainers.overlap.operations import OperationGraph, Resource
from trainers.overlap.plan import Launch, OverlapPlan
from trainers.overlap.schedule import Needs


class Event(Protocol):
    """As torch.cuda.Event."""

    def record(self, stream: Any) -> None: ...

    def elapsed_time(self, end_event: Any) -> float: ...


class Stream(Protocol):
    """As torch.cuda.Stream."""

    def wait_event(self, event: Any) -> None: ...


class Streams(Protocol):
    """What a device offers: streams, timed events, a current stream, and waiting for all."""

    def stream(self) -> Stream: ...

    def event(self) -> Event: ...

    def on(self, stream: Stream) -> AbstractContextManager[Any]: ...

    def synchronize(self) -> None: ...


class CudaStreams:
    """The current CUDA device."""

    def stream(self) -> Stream:
        from torch import cuda

        return cuda.Stream()

    def event(self) -> Event:
        from torch import cuda

        return cuda.Event(enable_timing=True)

    def on(self, stream: Any) -> AbstractContextManager[Any]:
        from torch import cuda

        return cuda.stream(stream)

    def synchronize(self) -> None:
        from torch import cuda

        cuda.synchronize()


def execute(
    graph: OperationGraph,
    plan: OverlapPlan,
    functions: Mapping[str, Callable[[], None]],
    iterations: int = 1,
    device: Streams | None = None,
) -> dict[Launch, tuple[float, float]]:
    """Run the plan for so many iterations; seconds at which each operation began and ended, from the first on."""
    run = _Run(graph, plan, device or CudaStreams())
    for launch in in_order(plan, iterations):
        run.enqueue(launch, functions[launch[1]])
    return run.spans()


def in_order(plan: OverlapPlan, iterations: int) -> list[Launch]:
    """Operations of all streams as one host thread enqueues them: none before what it waits for."""
    place = {name: index for index, name in enumerate(plan.order)}

    def due(launch: Launch) -> tuple[float, int, int]:
        turn, name = launch
        return turn * plan.period_seconds + plan.starts[name], turn, place[name]

    return sorted(((turn, name) for turn in range(iterations) for name in plan.starts), key=due)


class _Run:
    def __init__(self, graph: OperationGraph, plan: OverlapPlan, device: Streams) -> None:
        self._graph, self._device, self._needs = graph, device, Needs(graph)
        one = device.stream() if plan.mode == "serial" else None
        self._streams: dict[Resource, Stream] = {each: one or device.stream() for each in graph.resources}
        self._events: dict[Launch, tuple[Event, Event]] = {}

    def enqueue(self, launch: Launch, function: Callable[[], None]) -> None:
        stream = self._stream(launch)
        for need in self._needs.of(launch):
            if self._stream(need) is not stream:
                stream.wait_event(self._events[need][1])
        begin, end = self._events[launch] = self._device.event(), self._device.event()
        begin.record(stream)
        with self._device.on(stream):
            function()
        end.record(stream)

    def spans(self) -> dict[Launch, tuple[float, float]]:
        self._device.synchronize()
        first = next(begin for begin, _ in self._events.values())
        return {
            launch: (first.elapsed_time(begin) / 1e3, first.elapsed_time(end) / 1e3)
            for launch, (begin, end) in self._events.items()
        }

    def _stream(self, launch: Launch) -> Stream:
        return self._streams[self._graph[launch[1]].resource]
