"""The data order as a pure function of (seed, step, rank): whoever knows the step can rewind or resume it."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trainers.errors import DataError

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class DataOrder:
    """Every epoch is a fresh permutation, cut into global batches; the incomplete tail is dropped.

    A global batch holds `batch_size` samples for each of `world_size` ranks, one slice a rank, so that equal
    products of the two see equal global batches. Raises DataError if the data hold less than one global batch.
    """

    samples: int
    batch_size: int
    world_size: int
    seed: int

    def __post_init__(self) -> None:
        if self.steps_per_epoch == 0:
            raise DataError(
                f"The training split holds {self.samples} samples, fewer than one step's "
                f"{self.batch_size} × {self.world_size} ranks; lower batch_size, accumulate or the number of workers."
            )

    @property
    def steps_per_epoch(self) -> int:
        return self.samples // (self.batch_size * self.world_size)

    def indices(self, step: int, rank: int) -> Indices:
        """The `batch_size` samples that `rank` sees at `step` (both from 0)."""
        epoch, batch = divmod(step, self.steps_per_epoch)
        start = (batch * self.world_size + rank) * self.batch_size
        return _permutation(self.samples, self.seed, epoch)[start : start + self.batch_size]


@lru_cache(maxsize=2)  # a probe that crosses an epoch's end goes back and forth between two
def _permutation(samples: int, seed: int, epoch: int) -> Indices:
    return np.random.default_rng([seed, epoch]).permutation(samples)
