"""How rows get from every rank to every other: one route for one traffic, there and back."""

from __future__ import annotations

from typing import Protocol

import torch.distributed as dist
from torch import Tensor

from comm_plans.all_to_all.cluster import Bytes


class Route(Protocol):
    """Carries rows of one traffic as often as it is asked to; every rank must ask equally often and in one order."""

    def carry(self, rows: Tensor) -> Tensor:
        """Rows (sent, …) grouped by the rank they go to become rows (received, …) grouped by the rank they are from."""

    @property
    def back(self) -> Route:
        """The route of the transposed traffic."""


class Staying:
    """The route of a rank that is alone."""

    def carry(self, rows: Tensor) -> Tensor:
        """The rows themselves."""
        return rows

    @property
    def back(self) -> Staying:
        """This route."""
        return self


class BackendRoute:
    """By the backend's own all-to-all. counts: rows from rank to rank (N×N)."""

    def __init__(self, group: dist.ProcessGroup, counts: Bytes) -> None:
        self._group, self._counts = group, counts

    def carry(self, rows: Tensor) -> Tensor:
        """See `Route`."""
        rank = self._group.rank()
        sent, received = self._counts[rank].tolist(), self._counts[:, rank].tolist()
        taken = rows.new_empty((sum(received), *rows.shape[1:]))
        dist.all_to_all_single(taken, rows.contiguous(), received, sent, group=self._group)
        return taken

    @property
    def back(self) -> BackendRoute:
        """See `Route`."""
        return BackendRoute(self._group, self._counts.T)
