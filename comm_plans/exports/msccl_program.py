"""What an MSCCL program is made of: thread blocks of steps on each rank, joined by channels.

The rules are those of the MSCCL and RCCL interpreters: a thread block has at most one peer to send to and one to
receive from, on one channel; a (sender, receiver, channel) belongs to one pair of thread blocks; a step waits for at
most one step of another thread block of its rank.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

PEERS_PER_CHANNEL = 32  # thread blocks of a rank that send (or receive) on one channel, by the interpreter's tables

Connection = tuple[int, int]


class Place(NamedTuple):
    """A run of chunks of a rank's own memory: buffer "i" (input), "o" (output) or "s" (scratch)."""

    buffer: str
    offset: int


class Wait(NamedTuple):
    """A step that another one waits for: thread block and step number, on the same rank."""

    block: ThreadBlock
    step: int


@dataclass(frozen=True)
class Step:
    """One instruction on `chunks` chunks: s, r, rcs, rrc, rrs, rrcs or cpy, in the interpreter's words."""

    kind: str
    source: Place
    target: Place
    chunks: int
    wait: Wait | None = None


@dataclass(eq=False)
class ThreadBlock:
    """Steps that run in order. receive_from, send_to: ranks, or -1. awaited: steps that others wait for."""

    number: int
    receive_from: int
    send_to: int
    channel: int
    steps: list[Step] = field(default_factory=list)
    awaited: set[int] = field(default_factory=set)

    def add(self, kind: str, source: Place, target: Place, chunks: int, wait: Wait | None = None) -> Wait:
        """Append a step; returns the handle by which others can wait for it."""
        if wait is not None:
            wait.block.awaited.add(wait.step)
        self.steps.append(Step(kind, source, target, chunks, wait))
        return Wait(self, len(self.steps) - 1)


@dataclass
class Program:
    """Thread blocks of every rank, the scratch chunks each needs, and which channels its connections take."""

    ranks: int
    chunks: int
    blocks: list[list[ThreadBlock]] = field(init=False)
    scratch: Counter[int] = field(default_factory=Counter)
    taken: defaultdict[Connection, set[int]] = field(default_factory=lambda: defaultdict(set))
    senders: Counter[tuple[int, int]] = field(default_factory=Counter)
    receivers: Counter[tuple[int, int]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.blocks = [[] for _ in range(self.ranks)]

    @property
    def channels(self) -> int:
        """Number of channels: the highest in use, plus one."""
        return 1 + max((block.channel for blocks in self.blocks for block in blocks), default=0)

    def block(self, rank: int, channel: int, *, receive_from: int = -1, send_to: int = -1) -> ThreadBlock:
        """A new thread block on `rank`."""
        block = ThreadBlock(len(self.blocks[rank]), receive_from, send_to, channel)
        self.blocks[rank].append(block)
        return block

    def claim_channel(self, chain: Sequence[Connection]) -> int:
        """The lowest channel that is free on every connection of `chain`, now taken by it."""
        channel = next(channel for channel in count() if all(self._free(pair, channel) for pair in chain))
        for sender, receiver in chain:
            self.taken[sender, receiver].add(channel)
            self.senders[sender, channel] += 1
            self.receivers[receiver, channel] += 1
        return channel

    def claim_scratch(self, rank: int, chunks: int) -> Place:
        """`chunks` fresh scratch chunks on `rank`."""
        place = Place("s", self.scratch[rank])
        self.scratch[rank] += chunks
        return place

    def _free(self, connection: Connection, channel: int) -> bool:
        sender, receiver = connection
        return (
            channel not in self.taken[connection]
            and self.senders[sender, channel] < PEERS_PER_CHANNEL
            and self.receivers[receiver, channel] < PEERS_PER_CHANNEL
        )
