"""Blocks of parameters, the pieces that buckets are made of: cut in the order in which gradients come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from torch.nn import Parameter

from trainers.overlap.training.layout import BucketLayout
from trainers.overlap.training.recording import Recording

MOST = 32  # blocks, so that the search has no more choice than it can go through


def blocks_of(recording: Recording, parameters: Mapping[str, Parameter]) -> tuple[BucketLayout, ...]:
    """Runs of parameters, each of 1/MOST of all bytes at least, but for the last."""
    singles = [BucketLayout((name,), recording.places[name]) for name in recording.ready]
    total = sum(parameter.nbytes for parameter in parameters.values())
    return joined(singles, recording, parameters, total / MOST)


def joined(
    blocks: Sequence[BucketLayout], recording: Recording, parameters: Mapping[str, Parameter], size: float
) -> tuple[BucketLayout, ...]:
    """Neighbours put together to `size` bytes at least, but for the last."""
    runs: list[list[BucketLayout]] = [[]]
    for block in blocks:
        if sum(bytes_of(each, parameters) for each in runs[-1]) >= size:
            runs.append([])
        runs[-1].append(block)
    return tuple(_one(run, recording) for run in runs)


def bytes_of(block: BucketLayout, parameters: Mapping[str, Parameter]) -> int:
    """Of its gradients."""
    return sum(parameters[name].nbytes for name in block.parameters)


def _one(run: Iterable[BucketLayout], recording: Recording) -> BucketLayout:
    names = tuple(chain.from_iterable(block.parameters for block in run))
    return BucketLayout(names, recording.waits(names))
