"""One rank of a group that averages its iterates, run as a process by test_averaging_ranks.py: RANK RANKS FOLDER."""

import json
import sys
from functools import partial
from pathlib import Path

import torch
from rank import meet
from schedulefree import AdamWScheduleFree
from torch import nn
from torch.utils.data import TensorDataset

from trainers import Splits, Task, Trainer, TrainerOptions
from trainers.communication import process_group

RATES = [0.02] * 12
OPTIMIZER = partial(AdamWScheduleFree, betas=(0.8, 0.99), weight_decay=0.01)


class Line(Task):
    """A line through three numbers, with or without batch norm and dropout."""

    def __init__(self, norm: bool) -> None:
        self._norm = norm

    def build_model(self) -> nn.Module:
        middle = [nn.BatchNorm1d(8), nn.Dropout(0.2)] if self._norm else [nn.Tanh()]
        return nn.Sequential(nn.Linear(3, 8), *middle, nn.Linear(8, 1))

    def build_data(self) -> Splits:
        features = torch.randn(90, 3, generator=torch.Generator().manual_seed(0))
        targets = features.sum(1, keepdim=True)
        return Splits(*(TensorDataset(features[a:b], targets[a:b]) for a, b in ((0, 48), (48, 66), (66, 90))))

    def loss(self, model: nn.Module, batch: tuple[torch.Tensor, ...]) -> torch.Tensor:
        features, targets = batch
        return (model(features) - targets).square().mean()


def seen(trainer: Trainer, weights: Path) -> dict:
    """Everything that may be looked at, twice over, between steps that it must not disturb."""
    looks, losses = [], []
    for _ in range(2):
        losses.append(trainer.train(RATES))
        looks.append([[trainer.validate(), trainer.weights_sha256()] for _ in range(2)])
    trainer.save_weights(weights)
    return {"looks": looks, "losses": losses, "statistics": statistics(trainer.model)}


def statistics(model: nn.Module) -> list:
    """Of batch norm, as they stand in training: each rank gathers its own, and they are shared after each stretch."""
    return [buffer.tolist() for buffer in model.buffers()]


def main(rank: int, ranks: int, folder: Path) -> None:
    with process_group(meet(rank, ranks, folder), rank, ranks):
        found = {
            name: seen(Trainer(Line(norm), OPTIMIZER, TrainerOptions(4), rank, ranks), folder / f"{name}.safetensors")
            for name, norm in (("norm", True), ("plain", False))
        }
    (folder / f"seen-{rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
