"""What an MSCCL program is made of: thread blocks of steps on each rank, joined by channels.

The rules are those of the MSCCL and RCCL interpreters: a thread block has at most one peer to send to and one to
receive from, on one channel; a (sender, receiver, channel) belongs to one pair of thread blocks; a step waits for at
most one step of another thread block of its rank.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
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
    """Steps that run in order. receive_from, send_to: ranks, or -1. family: the last trees that used it. awaited:
    steps that others wait for."""

    number: int
    receive_from: int
    send_to: int
    channel: int
    family: int = 0
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
    """Thread blocks of every rank, the scratch chunks each needs, and how many channels there are.

    share: whether different families of trees may run one after the other in the same thread blocks. Each family runs
    in the order in which it was built, everywhere, so that no two can wait for each other.
    """

    ranks: int
    chunks: int
    share: bool
    blocks: list[list[ThreadBlock]] = field(init=False)
    scratch: Counter[int] = field(default_factory=Counter)
    family: int = 0
    channels: int = 1
    _known: dict[tuple[int, int, int, int], ThreadBlock] = field(default_factory=dict)
    _taken: defaultdict[Connection, set[int]] = field(default_factory=lambda: defaultdict(set))
    _senders: Counter[tuple[int, int]] = field(default_factory=Counter)
    _receivers: Counter[tuple[int, int]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.blocks = [[] for _ in range(self.ranks)]

    @property
    def connections(self) -> Counter[Connection]:
        """How many channels join each pair of ranks."""
        return Counter({pair: len(channels) for pair, channels in self._taken.items()})

    def block(self, rank: int, channel: int, *, receive_from: int = -1, send_to: int = -1) -> ThreadBlock:
        """The thread block of `rank` in that role, new or shared with earlier families."""
        role = (rank, receive_from, send_to, channel)
        if role not in self._known:
            self._known[role] = ThreadBlock(len(self.blocks[rank]), receive_from, send_to, channel)
            self.blocks[rank].append(self._known[role])
        self._known[role].family = self.family
        return self._known[role]

    def claim_channel(self, walk: Sequence[int]) -> int:
        """A channel for a chain of thread blocks along `walk`, now taken: the lowest that is free for all of them, or
        where sharing is allowed, the one on which the most exist already."""
        roles = list(zip([-1, *walk], walk, [*walk[1:], -1], strict=False))
        if self.share:
            fits = [
                channel for channel in range(self.channels + 1) if all(self._fits(*role, channel) for role in roles)
            ]
            channel = min(fits, key=lambda each: sum((rank, a, b, each) not in self._known for a, rank, b in roles))
        else:
            channel = next(channel for channel in count() if all(self._fits(*role, channel) for role in roles))
        self.channels = max(self.channels, channel + 1)
        for sender, receiver in pairwise(walk):
            if channel not in self._taken[sender, receiver]:
                self._taken[sender, receiver].add(channel)
                self._senders[sender, channel] += 1
                self._receivers[receiver, channel] += 1
        return channel

    def claim_scratch(self, rank: int, chunks: int) -> Place:
        """`chunks` fresh scratch chunks on `rank`."""
        place = Place("s", self.scratch[rank])
        self.scratch[rank] += chunks
        return place

    def _fits(self, receive_from: int, rank: int, send_to: int, channel: int) -> bool:
        """Whether a thread block in that role exists to be shared, or could be made: its connections are free."""
        known = self._known.get((rank, receive_from, send_to, channel))
        if self.share and known is not None and known.family != self.family:
            return True
        inward = receive_from < 0 or (
            channel not in self._taken[receive_from, rank] and self._receivers[rank, channel] < PEERS_PER_CHANNEL
        )
        outward = send_to < 0 or (
            channel not in self._taken[rank, send_to] and self._senders[rank, channel] < PEERS_PER_CHANNEL
        )
        return inward and outward
