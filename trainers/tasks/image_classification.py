"""Image classification: scikit-learn's digits, or MNIST-like data from a folder of IDX files."""

from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import TensorDataset

from trainers.data.images import LabelledImages, read_images
from trainers.errors import DataError
from trainers.models.convnet import ConvNet
from trainers.tasks.classification import classification_metrics
from trainers.tasks.task import Batch, ModelFactory, Splits, Task


class ImageClassification(Task):
    """Tell the class of a grey image.

    model: called with channels=1, size=(height, width), classes; maps images (batch, 1, height, width) of about zero
    mean and unit deviation to logits (batch, classes).
    data: "digits", or a folder of IDX files as MNIST and Fashion-MNIST come in.
    """

    def __init__(self, model: ModelFactory = ConvNet, data: str = "digits") -> None:
        self._model, self._data = model, data

    def build_model(self) -> nn.Module:
        train = self._parts["train"]
        return self._model(channels=1, size=train.images.shape[1:], classes=int(train.labels.max()) + 1)

    def build_data(self) -> Splits:
        return Splits(*(_data_set(self._parts[name]) for name in ("train", "validation", "test")))

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        images, labels = batch
        return cross_entropy(model(self._normalised(images)), labels)

    def metrics(self, model: nn.Module, batch: Batch) -> dict[str, Tensor]:
        images, labels = batch
        return classification_metrics(model(self._normalised(images)), labels)

    def predict(self, model: nn.Module, inputs: Any, **options: Any) -> Any:
        """The classes' probabilities (samples, classes) of images (samples, height, width) as bright as the data's.

        Each may also be one row of height × width numbers, as tables have them. Raises DataError for other sizes.
        """
        height, width = self._parts["train"].images.shape[1:]
        images = np.array(inputs, np.float32)
        if images.shape[1:] not in ((height, width), (height * width,)):
            raise DataError(
                f"images of {self._data} are {height} × {width}, and the input has the shape {images.shape}."
            )
        logits: Tensor = model(self._normalised(torch.from_numpy(images.reshape(-1, height, width))))
        return logits.softmax(-1).numpy()

    def _normalised(self, images: Tensor) -> Tensor:
        mean, deviation = self._brightness
        return ((images.float() - mean) / deviation)[:, None]

    @cached_property
    def _parts(self) -> dict[str, LabelledImages]:
        return read_images(self._data)

    @cached_property
    def _brightness(self) -> tuple[float, float]:
        """Mean and deviation of a training pixel, from the first images alone: more would not change them."""
        pixels = self._parts["train"].images[:10_000]
        return float(pixels.mean()), float(pixels.std())


def _data_set(part: LabelledImages) -> TensorDataset:
    return TensorDataset(torch.from_numpy(part.images), torch.from_numpy(part.labels))
