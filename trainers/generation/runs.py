"""What decoding reads of a key-value cache: runs of consecutive slots, one set for each sequence and key-value head.

Every way to attend says what it reads in this form: all of a sequence (one run a stretch of pages), clusters, pages,
the first and the last tokens. One kernel then attends over runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Slots = NDArray[np.int64]


class Scores(NamedTuple):
    """Of tokens that were scored while it was chosen what to read, so that their keys need not be read again.

    Of run i's tokens the scores are values[:, places[i]:] (group, scored tokens), or not known if places[i] is -1.
    """

    places: Slots
    values: NDArray[np.float32]

    @staticmethod
    def none(runs: int) -> Scores:
        return Scores(np.full(runs, -1), np.zeros((0, 0), np.float32))

    @staticmethod
    def joined(parts: Sequence[Scores]) -> Scores:
        """The scores of all parts, in order."""
        known = [part.values for part in parts if part.values.size]
        before = np.cumsum([0, *(part.values.shape[1] for part in parts)])
        places = [np.where(part.places < 0, -1, part.places + at) for part, at in zip(parts, before, strict=False)]
        return Scores(np.concatenate(places), np.concatenate(known, 1) if known else np.zeros((0, 0), np.float32))


@dataclass(frozen=True)
class Runs:
    """Row r reads slots starts[i] … starts[i] + lengths[i] - 1 for i in offsets[r]:offsets[r + 1].

    One row a key-value head of a sequence; of several sequences, the heads of the first come first. Runs of a row don't
    overlap. Slots count from the beginning of the store of one layer. scores: of the step's queries, where known.
    """

    starts: Slots
    lengths: Slots
    offsets: Slots
    scores: Scores | None = None

    @property
    def rows(self) -> int:
        return len(self.offsets) - 1

    def tokens(self) -> Slots:
        """How many tokens each row reads."""
        sums = np.concatenate([[0], np.cumsum(self.lengths)])
        return np.asarray(sums[self.offsets[1:]] - sums[self.offsets[:-1]], np.int64)

    @property
    def known(self) -> Scores:
        """Scores, of no token if there are none."""
        return Scores.none(len(self.starts)) if self.scores is None else self.scores

    @staticmethod
    def joined(parts: Sequence[Runs]) -> Runs:
        """The rows of all parts, in order."""
        counts = np.concatenate([np.diff(part.offsets) for part in parts])
        starts, lengths = ([getattr(part, name) for part in parts] for name in ("starts", "lengths"))
        offsets = np.concatenate([[0], np.cumsum(counts)])
        known = Scores.joined([part.known for part in parts]) if len(parts) > 1 else parts[0].scores
        return Runs(np.concatenate(starts), np.concatenate(lengths), offsets, known)
