"""Disjoint random shares of a set of samples, always the same ones: a split must not change with a run's seed."""

import numpy as np
from numpy.typing import NDArray


def shares(samples: int, fractions: list[float]) -> list[NDArray[np.int64]]:
    """Indices of each share; `fractions` sum to 1, and every sample is in exactly one share."""
    order = np.random.default_rng(0).permutation(samples)
    ends = np.round(np.cumsum(fractions)[:-1] * samples).astype(int)
    return np.split(order, ends)
