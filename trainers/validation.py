"""Scoring a model on a split: every sample once, shared out over ranks, with no trace left in the training state."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from trainers.communication import sum_over_ranks
from trainers.random_state import separate_randomness

Score = Callable[[Tensor], dict[str, Tensor]]


@contextmanager
def evaluation_mode(model: nn.Module, seed: int) -> Iterator[None]:
    """Evaluation mode, no gradients, random numbers of its own; all as before afterwards, module by module."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        with torch.no_grad(), separate_randomness(seed):
            yield
    finally:
        for module in training:
            module.training = True


def evenly_spaced(samples: int, wanted: int | None) -> Tensor:
    """Indices of `wanted` of `samples` samples (None, or more than there are: of all), always the same ones."""
    count = samples if wanted is None else min(wanted, samples)
    return torch.arange(count) * samples // count


def mean_scores(
    score: Score, indices: Tensor, batch_size: int, rank: int, world_size: int, device: torch.device
) -> dict[str, float]:
    """Means over all samples of what `score` says of each batch (themselves means over the batch).

    Batches are dealt to ranks like cards, and weigh by their size, so that a short last one counts for what it holds.
    The result is equal on every rank. A rank that has no batch in the last round scores the first one at no weight: it
    has to name the same numbers, and others may wait for its part in a model that is spread over ranks.
    """
    sums: defaultdict[str, float] = defaultdict(float)
    batches = indices.split(batch_size)
    for number in range(rank, -(-len(batches) // world_size) * world_size, world_size):
        batch = batches[number] if number < len(batches) else batches[0]
        weight = len(batch) if number < len(batches) else 0
        for name, value in score(batch).items():
            sums[name] += float(value) * weight if weight else 0.0
    totals = sum_over_ranks([sums[name] for name in sorted(sums)], device)
    return {name: total / len(indices) for name, total in zip(sorted(sums), totals, strict=True)}
