"""A schedule of an all-to-all on a cluster: steps of transfers, each a range of bytes from one GPU to another.

What the cards carry is stored once; who balances and redistributes it follows from where it comes from and goes to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from comm_plans.all_to_all.byte_map import Pieces
from comm_plans.all_to_all.cluster import Bytes, Cluster, Places
from comm_plans.all_to_all.local_traffic import Local
from comm_plans.all_to_all.slots import Slots


class Transfers(NamedTuple):
    """What moves in one step, an entry a transfer: bytes `low … high` of what rank `origin` has for rank `destination`,
    from rank `source` to rank `target`."""

    source: Places
    target: Places
    origin: Places
    destination: Places
    low: Bytes
    high: Bytes


@dataclass(frozen=True)
class Schedule:
    """Slots for the cards, the first in step `lead`, one a step, each redistributed in the step after it.

    Balance is ahead: in the step before the slot that needs it; or, as published, all of it in step `lead` − 1.
    """

    cluster: Cluster
    slots: Slots
    pieces: Pieces
    local: Local
    lead: int
    ahead: bool

    @property
    def stages(self) -> int:
        """Number of different stages: partners and weight."""
        return len(np.unique(self.slots.stage))

    def __len__(self) -> int:
        """Number of steps."""
        return self.lead + len(self.slots.weights) + 1

    def steps(self) -> Iterator[Transfers]:
        """What moves in each step, in order."""
        slots = range(len(self.slots.weights))
        for step in range(len(self)):
            parts = [self._local(step)]
            if self.ahead:
                parts += [self._balance(slot) for slot in (step - self.lead + 1,) if slot in slots]
            elif step == self.lead - 1:
                parts += [self._balance(slot) for slot in slots]
            parts += [self._sent(slot) for slot in (step - self.lead,) if slot in slots]
            parts += [self._redistribution(slot) for slot in (step - self.lead - 1,) if slot in slots]
            yield self._among_ranks(Transfers(*map(np.concatenate, zip(*parts, strict=True))))

    def _local(self, step: int) -> Transfers:
        part = slice(self.local.first[step], self.local.first[step + 1])
        _, origin, destination, low, high = self.local
        return chosen(Transfers(origin, destination, origin, destination, low, high), part)

    def _sent(self, slot: int) -> Transfers:
        """From card to card; places instead of ranks."""
        cards = self.cluster.servers * self.cluster.gpus
        first = self.pieces.first[slot * cards : (slot + 1) * cards + 1]
        part = slice(first[0], first[-1])
        source = np.repeat(np.arange(cards, dtype=np.int32), np.diff(first))
        server, card = np.divmod(source, self.cluster.gpus)
        target = (self.slots.partners[slot, server] * self.cluster.gpus + card).astype(np.int32)
        _, origin, destination, low, high = self.pieces
        return Transfers(source, target, origin[part], destination[part], low[part], high[part])

    def _balance(self, slot: int) -> Transfers:
        sent = self._sent(slot)
        return chosen(sent._replace(source=sent.origin, target=sent.source), sent.origin != sent.source)

    def _redistribution(self, slot: int) -> Transfers:
        sent = self._sent(slot)
        return chosen(sent._replace(source=sent.target, target=sent.destination), sent.target != sent.destination)

    def _among_ranks(self, transfers: Transfers) -> Transfers:
        if self.cluster.uniform:
            return transfers
        source, target, origin, destination, low, high = transfers
        rank_at = self.cluster.rank_at
        return Transfers(rank_at[source], rank_at[target], rank_at[origin], rank_at[destination], low, high)


def chosen(transfers: Transfers, which: Any) -> Transfers:
    """Some of them, by a slice or a mask."""
    source, target, origin, destination, low, high = transfers
    return Transfers(source[which], target[which], origin[which], destination[which], low[which], high[which])
