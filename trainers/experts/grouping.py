"""Rows in groups: an order of rows, the order that undoes it, and gradients that follow."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class Grouping(NamedTuple):
    """Row `order[i]` comes to place i, and place `inverse[j]` is where row j came to."""

    order: Tensor
    inverse: Tensor

    @classmethod
    def by(cls, keys: Tensor) -> "Grouping":
        """Rows of one key together, keys ascending, rows in their old order within a group. keys: int64, one a row."""
        order = keys.argsort(stable=True)
        inverse = torch.empty_like(order)
        inverse[order] = torch.arange(len(order), device=order.device)
        return cls(order, inverse)

    def made(self, rows: Tensor) -> Tensor:
        """The rows in their groups."""
        result: Tensor = _Permuted.apply(rows, self.order, self.inverse)  # type: ignore[no-untyped-call]
        return result

    def undone(self, rows: Tensor) -> Tensor:
        """The rows as they were before `made`."""
        result: Tensor = _Permuted.apply(rows, self.inverse, self.order)  # type: ignore[no-untyped-call]
        return result


def expert_of_rows(counts: NDArray[np.int64]) -> Tensor:
    """The expert of each row that arrives: counts (ranks, experts), rows grouped by rank and then by expert."""
    ranks, experts = counts.shape
    return torch.from_numpy(np.repeat(np.tile(np.arange(experts), ranks), counts.ravel()))


class _Permuted(torch.autograd.Function):
    """`rows[order]`, whose gradient is a gather too: unlike a sum by index it has the same bits every time."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, order: Tensor, inverse: Tensor) -> Tensor:
        ctx.save_for_backward(inverse)
        return rows[order]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (inverse,) = ctx.saved_tensors
        return gradient[inverse], None, None
