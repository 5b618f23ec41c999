"""Tables: classification or regression on one of scikit-learn's sets."""

from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss
from torch.utils.data import TensorDataset

from trainers.data.tables import Table, is_regression, read_table, read_whole
from trainers.errors import DataError
from trainers.models.mlp import Mlp
from trainers.tasks.classification import classification_metrics
from trainers.tasks.task import Batch, ModelFactory, Splits, Task


class Tabular(Task):
    """Tell a row's class, or its number, from standardised features.

    model: called with features and outputs; maps (batch, features) to (batch, outputs): logits, or one number, whose
    loss is the squared error in units of the training split's variance.
    data: breast_cancer, digits, iris, wine, or diabetes (a number).
    """

    def __init__(self, model: ModelFactory = Mlp, data: str = "breast_cancer") -> None:
        self._model, self._data = model, data
        self._regression = is_regression(data)

    def build_model(self) -> nn.Module:
        train = self._parts["train"]
        outputs = 1 if self._regression else int(train.targets.max()) + 1
        return self._model(features=train.features.shape[1], outputs=outputs)

    def build_data(self) -> Splits:
        return Splits(*(_data_set(self._parts[name]) for name in ("train", "validation", "test")))

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        features, targets = batch
        predicted = model(features)
        return mse_loss(predicted[:, 0].float(), targets) if self._regression else cross_entropy(predicted, targets)

    def metrics(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        if self._regression:
            return {}
        features, targets = batch
        return classification_metrics(model(features), targets)

    def predict(self, model: nn.Module, inputs: Any, **options: Any) -> Any:
        """Of rows (samples, features) in the set's own units: the classes' probabilities, or the number in its unit.

        Raises DataError for rows of another length.
        """
        whole, rows = read_whole(self._data), np.array(inputs, np.float64)
        if rows.shape[1:] != whole.features.shape[1:]:
            raise DataError(
                f"rows of {self._data} have {whole.features.shape[1]} numbers, and the input has the shape "
                f"{rows.shape}; give one row a sample."
            )
        outputs = model(torch.from_numpy(whole.scale().standardised(rows)))
        return whole.target_scale().restored(outputs[:, 0].numpy()) if self._regression else outputs.softmax(-1).numpy()

    @cached_property
    def _parts(self) -> dict[str, Table]:
        return read_table(self._data)


def _data_set(part: Table) -> TensorDataset:
    return TensorDataset(torch.from_numpy(part.features), torch.from_numpy(part.targets))
