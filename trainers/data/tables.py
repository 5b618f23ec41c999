"""Tables of numbers that come with scikit-learn, standardised by their training split.

No torch here, so that a launch can check its table before anything starts.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.data.shares import shares
from trainers.errors import DataError

CLASSIFICATION = ("breast_cancer", "digits", "iris", "wine")
REGRESSION = ("diabetes",)


@dataclass(frozen=True)
class Table:
    """One split: features (samples, features) of float32; targets (samples,), int64 classes or float32 values."""

    features: NDArray[np.float32]
    targets: NDArray[np.int64] | NDArray[np.float32]


@dataclass(frozen=True)
class Scale:
    """Mean and deviation of the training split, by which values are standardised; a constant column becomes zeros."""

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> "Scale":
        """That of a training split's values (samples, …)."""
        deviation = values.std(axis=0)
        return cls(values.mean(axis=0), np.where(deviation > 0, deviation, 1.0))

    def standardised(self, values: NDArray[Any]) -> NDArray[np.float32]:
        """From units of the set to those of the model."""
        return ((values - self.mean) / self.deviation).astype(np.float32)

    def restored(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """The inverse."""
        restored: NDArray[np.float64] = values * self.deviation + self.mean
        return restored


@dataclass(frozen=True)
class Whole:
    """A set before it is cut, in its own units, and where it is cut: the indices of each split."""

    features: NDArray[np.float64]
    targets: NDArray[Any]
    splits: dict[str, NDArray[np.int64]]

    def scale(self) -> Scale:
        """Of the features."""
        return Scale.of(self.features[self.splits["train"]])

    def target_scale(self) -> Scale:
        """Of the targets of a regression."""
        return Scale.of(self.targets[self.splits["train"]])


def is_regression(data: str) -> bool:
    """Whether the set's target is a number instead of a class."""
    return data in REGRESSION


def check_table(data: str) -> None:
    """Raise DataError if there is no such set."""
    if data not in CLASSIFICATION + REGRESSION:
        raise DataError(f"task.data={data} is no table known here; choose {', '.join(CLASSIFICATION + REGRESSION)}.")


def read_whole(data: str) -> Whole:
    """A set with its train (70 %), validation and test split (15 % each). Raises DataError for an unknown name."""
    check_table(data)
    import sklearn.datasets

    features, targets = getattr(sklearn.datasets, f"load_{data}")(return_X_y=True)
    parts = shares(len(targets), [0.7, 0.15, 0.15])
    return Whole(features, targets, dict(zip(("train", "validation", "test"), parts, strict=True)))


def read_table(data: str) -> dict[str, Table]:
    """Train, validation and test split of a set, standardised. Raises DataError for an unknown name."""
    whole = read_whole(data)
    features = whole.scale().standardised(whole.features)
    regression = is_regression(data)
    targets = whole.target_scale().standardised(whole.targets) if regression else whole.targets.astype(np.int64)
    return {name: Table(features[part], targets[part]) for name, part in whole.splits.items()}
