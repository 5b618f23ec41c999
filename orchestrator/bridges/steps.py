"""What the bridges share: losses of a step and on held-out data as a policy is told them, equal on every rank."""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn

from trainers.communication import sum_over_ranks
from trainers.validation import evaluation_mode

Model = TypeVar("Model", bound=nn.Module)


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
        return _over_ranks(float(mean), mean.device)


def scorer(model: Model, validate: Callable[[Model], float] | None) -> Callable[[], float] | None:
    """What a policy asks for the loss on held-out data: the mean over ranks, the model in evaluation mode meanwhile."""
    if validate is None:
        return None

    def score() -> float:
        with evaluation_mode(model, seed=0):
            loss = float(validate(model))
        return _over_ranks(loss, next(model.parameters()).device)

    return score


def _over_ranks(loss: float, device: torch.device) -> float:
    total, ranks = sum_over_ranks([loss, 1.0], device)
    return total / ranks
