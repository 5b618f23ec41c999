"""What decoding reads of a key-value cache: runs of consecutive slots, one set for each sequence and key-value head.

Every way to attend says what it reads in this form: all of a sequence (one run a stretch of pages), clusters, pages,
the first and the last tokens. One kernel then attends over runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Slots = NDArray[np.int64]


@dataclass(frozen=True)
class Runs:
    """Row r reads slots starts[i] … starts[i] + lengths[i] - 1 for i in offsets[r]:offsets[r + 1].

    One row a key-value head of a sequence; of several sequences, the heads of the first come first. Runs of a row don't
    overlap. Slots count from the beginning of the store of one layer.
    """

    starts: Slots
    lengths: Slots
    offsets: Slots

    @property
    def rows(self) -> int:
        return len(self.offsets) - 1

    def tokens(self) -> Slots:
        """How many tokens each row reads."""
        sums = np.concatenate([[0], np.cumsum(self.lengths)])
        return np.asarray(sums[self.offsets[1:]] - sums[self.offsets[:-1]], np.int64)

    @staticmethod
    def joined(parts: Sequence[Runs]) -> Runs:
        """The rows of all parts, in order."""
        counts = np.concatenate([np.diff(part.offsets) for part in parts])
        starts, lengths = ([getattr(part, name) for part in parts] for name in ("starts", "lengths"))
        return Runs(np.concatenate(starts), np.concatenate(lengths), np.concatenate([[0], np.cumsum(counts)]))
