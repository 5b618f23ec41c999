"""A small training whose steps take their time, so that it can be made to last, with state beyond its weights."""

import time

import torch
from torch import Tensor, nn

from trainers.tasks.tabular import Tabular
from trainers.tasks.task import Batch


class Paced(Tabular):
    """Tabular with batch norm and dropout, whose training steps take `pause` seconds longer than they would."""

    def __init__(self, pause: float = 0.0, width: int = 64) -> None:
        super().__init__()
        self._pause, self._width = pause, width

    def build_model(self) -> nn.Module:
        features = self._parts["train"].features.shape[1]
        normed = nn.Sequential(nn.Linear(features, self._width), nn.BatchNorm1d(self._width), nn.ReLU())
        return nn.Sequential(normed, nn.Dropout(0.1), nn.Linear(self._width, 2))

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        if torch.is_grad_enabled():
            time.sleep(self._pause)
        return super().loss(model, batch)
