"""Rows that travel by a schedule: step after step, as messages between pairs of ranks, some passed on by a third."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from comm_plans.all_to_all.cluster import Bytes
from comm_plans.all_to_all.schedule import Transfers
from comm_plans.errors import TrafficError
from comm_plans.runtime.all_to_all.moves import Buffer, Message, Moves, Step, moves, starts, turned

Memory = dict[Buffer, Tensor]


class PlannedRoute:
    """One rank's part in a schedule and in the same schedule backwards. sizes: bytes from rank to rank (N×N)."""

    def __init__(self, group: dist.ProcessGroup, sizes: Bytes, there: Moves, back: Moves) -> None:
        self._group, self._sizes, self._there, self._back = group, sizes, there, back

    @classmethod
    def along(cls, group: dist.ProcessGroup, sizes: Bytes, steps: Sequence[Transfers]) -> PlannedRoute:
        """The route of `sizes` bytes from rank to rank along a schedule that carries them."""
        rank = group.rank()
        return cls(group, sizes, moves(rank, sizes, steps), moves(rank, sizes.T, turned(steps)))

    def carry(self, rows: Tensor) -> Tensor:
        """See `Route`. Raises TrafficError where the rows are not as many bytes as planned."""
        rank = self._group.rank()
        given = rows.contiguous().view(-1).view(torch.uint8)
        if len(given) != self._sizes[rank].sum():
            raise TrafficError(f"rank {rank} sends {len(given)} bytes along a plan for {self._sizes[rank].sum()}")
        taken = torch.empty(int(self._sizes[:, rank].sum()), dtype=torch.uint8, device=rows.device)
        relayed = torch.empty(self._there.relayed_bytes, dtype=torch.uint8, device=rows.device)
        memory: Memory = {"given": given, "relayed": relayed, "taken": taken}
        self._keep_own(memory)
        for step in self._there.steps:
            _carry_out(step, self._group, memory)
        return taken.view(rows.dtype).view(-1, *rows.shape[1:])

    @property
    def back(self) -> PlannedRoute:
        """See `Route`."""
        return PlannedRoute(self._group, self._sizes.T, self._back, self._there)

    def _keep_own(self, memory: Memory) -> None:
        """Copy what this rank has for itself."""
        rank = self._group.rank()
        given, taken = starts(self._sizes[rank])[rank], starts(self._sizes[:, rank])[rank]
        size = self._sizes[rank, rank]
        memory["taken"][taken : taken + size] = memory["given"][given : given + size]


def _carry_out(step: Step, group: dist.ProcessGroup, memory: Memory) -> None:
    """Send and receive at once; messages of one part need no copy."""
    arrivals = [(message, _landing(message, memory)) for message in step.receives]
    operations = [dist.P2POp(dist.irecv, landing, message.peer, group) for message, landing in arrivals]
    operations += [dist.P2POp(dist.isend, _joined(message, memory), message.peer, group) for message in step.sends]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    for message, landing in arrivals:
        _put_in_place(message, landing, memory)


def _joined(message: Message, memory: Memory) -> Tensor:
    views = _views(message, memory)
    return views[0] if len(views) == 1 else torch.cat(views)


def _landing(message: Message, memory: Memory) -> Tensor:
    """Where a message arrives: in its place, or beside it when it has several."""
    views = _views(message, memory)
    return views[0] if len(views) == 1 else views[0].new_empty(sum(map(len, views)))


def _put_in_place(message: Message, landing: Tensor, memory: Memory) -> None:
    if len(message.parts) > 1:
        views = _views(message, memory)
        for view, piece in zip(views, landing.split([len(view) for view in views]), strict=True):
            view.copy_(piece)


def _views(message: Message, memory: Memory) -> list[Tensor]:
    return [memory[buffer][low:high] for buffer, low, high in message.parts]
