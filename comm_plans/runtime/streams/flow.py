"""What moves of one tree on one rank: marks that say how far data has come, and the parts of a job that move them.

All in bytes from the start of the tree's piece. A part belongs to one stream; streams take their parts in order.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

WINDOW_BYTES = 256 << 10  # of a child's data that waits for the children before it; more waits in the network
READ_BYTES = 256 << 10  # at most at once, so that all streams have their turn
ADDED_ELEMENTS = 16 << 10  # at most at once: torch would start threads for more than 32768


class Watcher(Protocol):
    """Something that goes on when a mark moves."""

    def pump(self) -> None:
        """Do what can be done now."""


class Countdown(Protocol):
    """A job as its parts see it."""

    patience: float

    def part_added(self) -> None:
        """One part more is missing."""

    def part_done(self) -> None:
        """One part less is missing."""


class Mark:
    """How many bytes have come so far; its watchers go on as it moves."""

    __slots__ = ("at", "watchers")

    def __init__(self, at: int = 0) -> None:
        self.at = at
        self.watchers: list[Watcher] = []

    def advance(self, to: int) -> None:
        """Move to `to` and wake the watchers."""
        self.at = to
        for watcher in self.watchers:
            watcher.pump()


class Sending:
    """Bytes of `view` that leave as far as `ready` says."""

    __slots__ = ("job", "ready", "sent", "view")

    def __init__(self, job: Countdown, view: memoryview, ready: Mark) -> None:
        self.job, self.view, self.ready = job, view, ready
        self.sent = 0


class Landing:
    """Bytes that arrive where they belong, in `view`; `mark` says how many have."""

    __slots__ = ("chunk", "job", "mark", "size", "view")

    def __init__(self, job: Countdown, chunk: int, view: memoryview, mark: Mark) -> None:
        self.job, self.chunk, self.view, self.mark = job, chunk, view, mark
        self.size = len(view)

    @property
    def received(self) -> int:
        """Bytes that have arrived."""
        return self.mark.at

    def room(self) -> memoryview:
        """Where the next bytes go."""
        return self.view[self.mark.at : self.mark.at + READ_BYTES]

    def took(self, count: int) -> None:
        """So many bytes have arrived there."""
        self.mark.advance(self.mark.at + count)

    def settle(self) -> bool:
        """Whether all have arrived."""
        return self.mark.at == self.size


class Adding:
    """Bytes of a child, kept in a ring until `before` says that those before it are added; then added to `target`.

    `window` is the ring, of WINDOW_BYTES, and belongs to the stream; `mark` says how much has been added.
    """

    __slots__ = ("before", "chunk", "item", "job", "mark", "memory", "received", "size", "target", "window")

    def __init__(self, job: Countdown, chunk: int, window: Tensor, target: Tensor, before: Mark, mark: Mark) -> None:
        self.job, self.chunk, self.before, self.mark = job, chunk, before, mark
        self.target, self.window = target, window.view(target.dtype)
        self.memory = window.numpy().data
        self.item = target.element_size()
        self.size = len(target) * self.item
        self.received = 0

    def room(self) -> memoryview:
        """Where the next bytes go: nowhere while the ring is full."""
        place = self.received % WINDOW_BYTES
        free = min(WINDOW_BYTES - place, WINDOW_BYTES - (self.received - self.mark.at), self.size - self.received)
        return self.memory[place : place + free]

    def took(self, count: int) -> None:
        """So many bytes have arrived there."""
        self.received += count

    def settle(self) -> bool:
        """Add what is ready; whether all is added."""
        ready = min(self.received, self.before.at) // self.item
        at = first = self.mark.at // self.item
        while at < ready:
            place = at % len(self.window)
            count = min(ready - at, len(self.window) - place, ADDED_ELEMENTS)
            self.target[at : at + count].add_(self.window[place : place + count])
            at += count
        if at > first:
            self.mark.advance(at * self.item)
        return self.mark.at == self.size


Receiving = Landing | Adding


def new_window() -> Tensor:
    """The ring of one stream."""
    return torch.empty(WINDOW_BYTES, dtype=torch.uint8)
