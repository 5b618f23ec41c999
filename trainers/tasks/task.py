"""The seam that a user writes: a model, data and a loss. The trainer gives everything else."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

Batch = Tensor | tuple[Tensor, ...]
ModelFactory = Callable[..., nn.Module]  # called with what the data determine, by keyword


class DataSet(Protocol):
    """Samples 0 … len-1, fetched many at a time: a tensor is one, and `torch.utils.data.TensorDataset`."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: Tensor, /) -> Batch:
        """The samples of an int64 vector of indices, stacked along dimension 0 of every tensor."""


@dataclass(frozen=True)
class Splits:
    """Three disjoint data sets: weights come from `train`, choices from `validation`, reported numbers from `test`."""

    train: DataSet
    validation: DataSet
    test: DataSet


class Task(ABC):
    """What is to be learned. Every rank builds its own copy, so building must be deterministic."""

    @abstractmethod
    def build_model(self) -> nn.Module:
        """A fresh model; the trainer has seeded torch, so that every rank gets the same weights."""

    @abstractmethod
    def build_data(self) -> Splits:
        """The three splits, equal on every rank."""

    @abstractmethod
    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Mean loss over the batch, a scalar. Call `model(...)` itself, so that data parallelism sees the call."""

    def metrics(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        """More numbers to validate by, each a mean over the batch. With a "loss" among them, `loss` isn't run again."""
        return {}

    def evaluate(self, model: nn.Module, step: int) -> tuple[dict[str, float], list[str]]:
        """The task's own evaluation after `step` steps, on one rank alone: metrics, and samples for people to read."""
        return {}, []

    def predict(self, model: nn.Module, inputs: Any, **options: Any) -> Any:
        """What a trained model, in evaluation mode and without gradients, says of inputs as they come from outside.

        Here: the model's output (samples, …) for numbers (samples, …), an array or a table, as float32. A task that
        prepares its data, or answers in other words, says so here; `options` are its own.
        """
        return model(torch.from_numpy(np.array(inputs, np.float32))).numpy()

    def measurements(self, model: nn.Module) -> dict[str, float]:
        """Numbers about the training steps since the last call, this rank's own; every rank gives the same names."""
        return {}
