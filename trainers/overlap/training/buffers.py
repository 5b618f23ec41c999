"""Buffers that are rank 0's on all ranks when a step begins, as under DDP, sent while the one before computes."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn


class SharedBuffers:
    """A model's buffers: the forward pass changes them, so they may leave once the backward pass has begun."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._sent: list[tuple[dist.Work, Tensor, list[Tensor]]] = []

    def send(self) -> None:
        """Start to send copies of rank 0's, once a step."""
        if self._sent:
            return
        buffers = list(self._model.buffers())
        for kind in dict.fromkeys(buffer.dtype for buffer in buffers):
            alike = [buffer for buffer in buffers if buffer.dtype == kind]
            flat = torch.cat([buffer.reshape(-1) for buffer in alike])
            work = dist.broadcast(flat, src=0, async_op=True)
            self._sent.append((work, flat, alike))

    def take(self) -> None:
        """Put what has been sent into place."""
        for work, flat, buffers in self._sent:
            work.wait()
            parts = flat.split([buffer.numel() for buffer in buffers])
            for buffer, part in zip(buffers, parts, strict=True):
                buffer.copy_(part.view_as(buffer))
        self._sent.clear()
