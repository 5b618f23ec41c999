"""A task of one's own: the sine of a number.    orchestrate run task=own task._target_=own_task.Sine"""

import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from trainers import Splits, Task


class Sine(Task):
    def build_model(self) -> nn.Module:
        return nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))

    def build_data(self) -> Splits:
        x = torch.linspace(-3, 3, 1200)[:, None]
        return Splits(*(TensorDataset(x[part::3], x[part::3].sin()) for part in range(3)))

    def loss(self, model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
        x, y = batch
        return nn.functional.mse_loss(model(x), y)
