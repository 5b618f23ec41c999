"""What the bridges share: the loss of one step, as the mean over its batches and all ranks that a policy is told."""

import torch
from torch import Tensor

from trainers.communication import sum_over_ranks


class StepLoss:
    """Collects the losses of the batches whose gradients make one optimizer step."""

    def __init__(self) -> None:
        self._losses: list[Tensor] = []

    def add(self, loss: Tensor) -> None:
        """Of one batch."""
        self._losses.append(loss.detach())

    def take(self) -> float:
        """Their mean over batches and ranks, equal on every rank; starts over. ValueError where there is none."""
        if not self._losses:
            raise ValueError("An optimizer step came without a loss: the bridge needs the loss of every batch.")
        mean = torch.stack(self._losses).mean()
        self._losses = []
        total, ranks = sum_over_ranks([float(mean), 1.0], mean.device)
        return total / ranks
