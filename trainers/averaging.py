"""Optimizers that average their iterates, as Schedule-Free ones do: the average is what is scored and shipped.

Between steps the model of such an optimizer holds the point where gradients are taken. Switching to the average and
back is not exact in floating point, so that the weights themselves are put aside meanwhile, and put back to the bit.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim import Optimizer

from trainers.frozen import trained
from trainers.random_state import separate_randomness

BATCHES = 20  # from which the statistics of batch norm are estimated anew: they belong to other weights


@runtime_checkable
class Averaging(Protocol):
    """What tells such an optimizer from others: two modes, as a module has them."""

    def train(self) -> None:
        """Let the parameters be where gradients are taken."""

    def eval(self) -> None:
        """Let the parameters be the average."""


def ready_to_step(optimizer: Optimizer) -> None:
    """An averaging optimizer refuses steps before it is in its training mode."""
    if isinstance(optimizer, Averaging):
        optimizer.train()


@contextmanager
def averaged(model: nn.Module, optimizer: Optimizer, forward: Callable[[int], object], seed: int) -> Iterator[None]:
    """Let the model be the average inside the block, if its optimizer has one; to the bit as before afterwards.

    forward: passes training batch number 0, 1 … through the model, for the statistics of batch norm.
    """
    if not isinstance(optimizer, Averaging):
        yield
        return
    tensors = [*trained(model), *model.buffers()]
    before = [tensor.detach().clone() for tensor in tensors]
    optimizer.eval()
    try:
        with torch.no_grad(), separate_randomness(seed):
            _estimate_statistics(model, forward)
        yield
    finally:
        optimizer.train()
        with torch.no_grad():
            for tensor, value in zip(tensors, before, strict=True):
                tensor.copy_(value)


def _estimate_statistics(model: nn.Module, forward: Callable[[int], object]) -> None:
    """Means over the batches, in place of those gathered on the way here. Frozen layers keep theirs."""
    norms = [layer for layer in model.modules() if isinstance(layer, _BatchNorm) and layer.training]
    momenta = [layer.momentum for layer in norms]
    for layer in norms:
        layer.reset_running_stats()
        layer.momentum = None  # torch's word for a plain mean
    for number in range(BATCHES if norms else 0):
        forward(number)
    for layer, momentum in zip(norms, momenta, strict=True):
        layer.momentum = momentum
