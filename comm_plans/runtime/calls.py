"""The forms in which torch asks for a collective, each as the one flat buffer that a transport works on.

Inputs are never changed. Where torch's own output is contiguous, the transport works in it; otherwise in a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor


@dataclass(frozen=True)
class Call:
    """A flat buffer for the transport, and what puts the result where torch expects it and returns its tensors."""

    buffer: Tensor
    finish: Callable[[], list[Tensor]]


def all_reduce(tensors: Sequence[Tensor], divisor: int) -> Call:
    """The sum, divided by `divisor`, in every tensor; all of one type."""
    buffer = flat(tensors[0]) if len(tensors) == 1 else torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
    return Call(buffer, partial(_spread, buffer, tensors, divisor))


def broadcast(tensor: Tensor) -> Call:
    """The root's tensor in every tensor."""
    buffer = flat(tensor)
    return Call(as_bytes(buffer), partial(_spread, buffer, [tensor], 1))


def reduce(tensor: Tensor, at_root: bool, divisor: int) -> Call:
    """The sum, divided by `divisor`, in the root's tensor; the others keep theirs."""
    if at_root:
        return all_reduce([tensor], divisor)
    return Call(tensor.detach().reshape(-1).clone(), lambda: [tensor])


def all_gather(outputs: Sequence[Tensor], own: Tensor, rank: int) -> Call:
    """Everybody's `own` in `outputs`, in rank order."""
    buffer = own.new_empty(len(outputs) * own.numel())
    shards = buffer.chunk(len(outputs)) if len(buffer) else [buffer] * len(outputs)
    shards[rank].copy_(own.detach().reshape(-1))
    return Call(as_bytes(buffer), partial(_spread, buffer, outputs, 1))


def all_gather_single(output: Tensor, own: Tensor, rank: int) -> Call:
    """Everybody's `own`, one after the other, in `output`."""
    buffer = flat(output)
    shard = buffer[rank * own.numel() : (rank + 1) * own.numel()]
    if shard.data_ptr() != own.data_ptr() or not own.is_contiguous():
        shard.copy_(own.detach().reshape(-1))
    return Call(as_bytes(buffer), partial(_spread, buffer, [output], 1))


def all_gather_coalesced(outputs: Sequence[Tensor], own: Sequence[Tensor], rank: int, ranks: int) -> Call:
    """`all_gather_single` of several pairs at once; all of one type."""
    row = torch.cat([each.detach().reshape(-1) for each in own])
    rows = row.new_empty(ranks, len(row))
    rows[rank] = row
    return Call(as_bytes(rows.view(-1)), partial(_deal, rows, outputs))


def reduce_scatter(outputs: Sequence[Tensor], vectors: Sequence[Tensor], rank: int, ranks: int, divisor: int) -> Call:
    """The sum of everybody's shard number `rank` of each vector, divided by `divisor`; all of one type."""
    rows = torch.cat([vector.detach().reshape(ranks, -1) for vector in vectors], dim=1)
    return Call(rows.view(-1), partial(_spread, rows[rank], outputs, divisor))


def flat(tensor: Tensor) -> Tensor:
    """The tensor as a vector: itself where it is contiguous, else a copy."""
    return tensor.detach().reshape(-1)


def as_bytes(buffer: Tensor) -> Tensor:
    """A flat buffer that is only moved, so that its type does not matter."""
    return buffer.view(torch.uint8)


def _spread(buffer: Tensor, outputs: Sequence[Tensor], divisor: int) -> list[Tensor]:
    """Divide the flat result and copy it to where it does not lie yet."""
    if divisor > 1:
        buffer.div_(divisor)
    with torch.no_grad():
        for output, part in zip(outputs, buffer.split([output.numel() for output in outputs]), strict=True):
            if output.data_ptr() != part.data_ptr() or not output.is_contiguous():
                output.copy_(part.view(output.shape))
    return list(outputs)


def _deal(rows: Tensor, outputs: Sequence[Tensor]) -> list[Tensor]:
    """Copy each output's columns of the gathered rows, of which there is one for each rank."""
    widths = [output.numel() // len(rows) for output in outputs]
    with torch.no_grad():
        for output, columns in zip(outputs, rows.split(widths, dim=1), strict=True):
            output.copy_(columns.reshape(output.shape))
    return list(outputs)
