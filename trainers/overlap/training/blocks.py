"""Blocks of parameters, the pieces that buckets are made of, and ways to put them together.

All are cut in the order in which gradients come. Equal buckets, as DDP has them, keep the network busy; where they end
small, the next step's first layers get theirs sooner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain

from trainers.overlap.training.layout import BucketLayout
from trainers.overlap.training.recording import Recording

MOST = 48  # blocks
EQUAL = (2, 4, 8, 14, 20)  # buckets
TAPERED = (3, 4, 6)  # each bucket has this part of what is left
Size = Callable[[float], float]
"""Bytes of the next bucket, from those that are left."""


class Blocks:
    """A model's parameters in runs of 1/MOST of all bytes at least, but for the last."""

    def __init__(self, recording: Recording, sizes: Mapping[str, int]) -> None:
        """sizes: bytes of each parameter's gradient; what isn't summed over ranks has none."""
        self._recording, self._bytes = recording, sizes
        self.bytes = sum(sizes.values())
        singles = [BucketLayout((name,), recording.places[name]) for name in recording.ready]
        self.all = self._joined(singles, lambda _: self.bytes / MOST)

    def size(self, bucket: BucketLayout) -> int:
        """Bytes of its gradients."""
        return sum(self._bytes[name] for name in bucket.parameters)

    def equal(self, count: int) -> tuple[BucketLayout, ...]:
        """So many buckets of about one size."""
        return self._joined(self.all, lambda _: self.bytes / count)

    def tapered(self, part: int) -> tuple[BucketLayout, ...]:
        """Buckets each of which has one `part`-th of what is left."""
        return self._joined(self.all, lambda left: left / part)

    def candidates(self) -> dict[str, set[tuple[BucketLayout, ...]]]:
        """Ways to put the blocks into buckets, by kind."""
        return {"equal": {self.equal(count) for count in EQUAL}, "tapered": {self.tapered(part) for part in TAPERED}}

    def _joined(self, blocks: Sequence[BucketLayout], size: Size) -> tuple[BucketLayout, ...]:
        runs: list[list[BucketLayout]] = []
        filled, wanted, left = 0, 0.0, float(self.bytes)
        for block in blocks:
            if filled >= wanted:
                runs.append([])
                left -= filled
                filled, wanted = 0, size(left)
            runs[-1].append(block)
            filled += self.size(block)
        return tuple(self._one(run) for run in runs)

    def _one(self, run: Iterable[BucketLayout]) -> BucketLayout:
        names = tuple(chain.from_iterable(block.parameters for block in run))
        return BucketLayout(names, self._recording.waits(names))
