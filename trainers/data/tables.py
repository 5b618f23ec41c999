"""Tables of numbers that come with scikit-learn, standardised by their training split.

No torch here, so that a launch can check its table before anything starts.
"""

from dataclasses import dataclass

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


def is_regression(data: str) -> bool:
    """Whether the set's target is a number instead of a class."""
    return data in REGRESSION


def check_table(data: str) -> None:
    """Raise DataError if there is no such set."""
    if data not in CLASSIFICATION + REGRESSION:
        raise DataError(f"task.data={data} is no table known here; choose {', '.join(CLASSIFICATION + REGRESSION)}.")


def read_table(data: str) -> dict[str, Table]:
    """Train (70 %), validation and test split (15 % each) of a set. Raises DataError for an unknown name."""
    check_table(data)
    import sklearn.datasets

    features, targets = getattr(sklearn.datasets, f"load_{data}")(return_X_y=True)
    parts = shares(len(targets), [0.7, 0.15, 0.15])
    features = _standardised(features, by=features[parts[0]]).astype(np.float32)
    if is_regression(data):
        targets = _standardised(targets, by=targets[parts[0]]).astype(np.float32)
    else:
        targets = targets.astype(np.int64)
    names = ("train", "validation", "test")
    return {name: Table(features[part], targets[part]) for name, part in zip(names, parts, strict=True)}


def _standardised(values: NDArray[np.float64], by: NDArray[np.float64]) -> NDArray[np.float64]:
    """Zero mean and unit deviation on the training split; a constant column becomes zeros."""
    deviation = by.std(axis=0)
    standardised: NDArray[np.float64] = (values - by.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    return standardised
