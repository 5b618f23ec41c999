"""What one rank sends and receives in each step of an all-to-all schedule, as ranges of its own three buffers.

A piece travels whole: what a rank relays leaves it as it came, so that its place in the relay buffer is its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from comm_plans.all_to_all.cluster import Bytes, Places
from comm_plans.all_to_all.schedule import Transfers

Piece = tuple[int, int, int, int]  # origin, destination, first and last byte of what the one has for the other
Buffer = Literal["given", "relayed", "taken"]


class Part(NamedTuple):
    """Bytes `low … high` of a buffer: what the rank gave to be sent, what it passes on, or what is meant for it."""

    buffer: Buffer
    low: int
    high: int


class Message(NamedTuple):
    """One message to or from a peer: parts, one after another."""

    peer: int
    parts: tuple[Part, ...]


class Step(NamedTuple):
    """Messages that travel at once."""

    sends: tuple[Message, ...]
    receives: tuple[Message, ...]


class Moves(NamedTuple):
    """A rank's steps, those left out in which it has no part, and the size of its relay buffer in bytes."""

    steps: tuple[Step, ...]
    relayed_bytes: int


def moves(rank: int, sizes: Bytes, steps: Iterable[Transfers]) -> Moves:
    """The part of `rank` in a schedule. sizes: bytes from rank to rank (N×N), in whose order its buffers are laid out.

    What a rank has for itself is in the buffers but in no step.
    """
    layout = _Layout(rank, sizes)
    own = [_step(rank, transfers, layout) for transfers in steps]
    return Moves(tuple(step for step in own if step.sends or step.receives), layout.relayed_bytes)


def turned(steps: Sequence[Transfers]) -> list[Transfers]:
    """The same schedule run backwards: it carries the transposed traffic, as fast where links are as fast both ways."""
    return [
        Transfers(step.target, step.source, step.destination, step.origin, step.low, step.high)
        for step in reversed(steps)
    ]


def starts(sizes: Bytes) -> Bytes:
    """Where each block begins when blocks of these sizes lie one after another."""
    return np.cumsum(sizes) - sizes


class _Layout:
    """Where pieces lie on one rank."""

    def __init__(self, rank: int, sizes: Bytes) -> None:
        self._rank = rank
        self._given, self._taken = starts(sizes[rank]), starts(sizes[:, rank])
        self._relayed: dict[Piece, int] = {}
        self.relayed_bytes = 0

    def part(self, piece: Piece) -> Part:
        """The place of a piece; one that is only passed on gets its place when it is first asked for, as it arrives."""
        origin, destination, low, high = piece
        if origin == self._rank:
            return _shifted("given", int(self._given[destination]), low, high)
        if destination == self._rank:
            return _shifted("taken", int(self._taken[origin]), low, high)
        if piece not in self._relayed:
            self._relayed[piece] = self.relayed_bytes
            self.relayed_bytes += high - low
        return _shifted("relayed", self._relayed[piece], 0, high - low)


def _shifted(buffer: Buffer, start: int, low: int, high: int) -> Part:
    return Part(buffer, start + low, start + high)


def _step(rank: int, transfers: Transfers, layout: _Layout) -> Step:
    source, target = transfers.source, transfers.target
    sends = _messages(transfers, np.flatnonzero((source == rank) & (target != rank)), target, layout)
    receives = _messages(transfers, np.flatnonzero((target == rank) & (source != rank)), source, layout)
    return Step(sends, receives)


def _messages(transfers: Transfers, entries: NDArray[np.intp], peers: Places, layout: _Layout) -> tuple[Message, ...]:
    """One message for each peer, its pieces in the schedule's order on both sides."""
    parts: dict[int, list[Part]] = {}
    pieces = zip(*(column[entries].tolist() for column in transfers[2:]), strict=True)
    for peer, piece in zip(peers[entries].tolist(), pieces, strict=True):
        _append(parts.setdefault(peer, []), layout.part(piece))
    return tuple(Message(peer, tuple(found)) for peer, found in parts.items())


def _append(parts: list[Part], part: Part) -> None:
    """Add a part; one that goes on where the last one ends makes it longer."""
    if parts and (parts[-1].buffer, parts[-1].high) == (part.buffer, part.low):
        part = Part(part.buffer, parts.pop().low, part.high)
    parts.append(part)
