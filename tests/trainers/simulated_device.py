"""A device with streams and events that takes their steps in a random order, as far as events allow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any


@dataclass
class SimulatedEvent:
    """Done when its stream has come to it; the time is the number of steps that the device has taken."""

    done_at: int | None = None
    recorded: bool = False

    def record(self, stream: SimulatedStream) -> None:
        self.recorded = True
        stream.queue.append(("record", self))

    def elapsed_time(self, end_event: SimulatedEvent) -> float:
        assert self.done_at is not None
        assert end_event.done_at is not None
        return float(end_event.done_at - self.done_at)


@dataclass
class SimulatedStream:
    """A queue as a device keeps it."""

    queue: list[tuple[str, Any]] = field(default_factory=list)

    def wait_event(self, event: SimulatedEvent) -> None:
        assert event.recorded, "CUDA does not wait for an event that has not been recorded yet"
        self.queue.append(("wait", event))


class SimulatedDevice:
    """Takes the next step of a stream drawn at random among those that need not wait."""

    def __init__(self, seed: int) -> None:
        self._random, self._streams, self._steps = Random(seed), list[SimulatedStream](), 0
        self.current: SimulatedStream | None = None
        self.ran: list[Any] = []

    def stream(self) -> SimulatedStream:
        self._streams.append(SimulatedStream())
        return self._streams[-1]

    def event(self) -> SimulatedEvent:
        return SimulatedEvent()

    @contextmanager
    def on(self, stream: SimulatedStream) -> Iterator[None]:
        self.current = stream
        yield
        self.current = None

    def launch(self, what: Any) -> None:
        """Enqueue a function, or the name of one, on the current stream."""
        assert self.current
        self.current.queue.append(("kernel", what))

    def synchronize(self) -> None:
        while any(stream.queue for stream in self._streams):
            able = [stream for stream in self._streams if stream.queue and self._may_go(*stream.queue[0])]
            assert able, "streams wait for each other for ever"
            self._step(*self._random.choice(able).queue.pop(0))

    def _may_go(self, kind: str, what: Any) -> bool:
        return kind != "wait" or what.done_at is not None

    def _step(self, kind: str, what: Any) -> None:
        self._steps += 1
        if kind == "record":
            what.done_at = self._steps
        elif kind == "kernel":
            self.ran.append(what() if callable(what) else what)
