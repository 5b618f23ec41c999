"""Measures a trainer's step: passes and optimizer by trial steps, sums over ranks on the group itself, and pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import torch
import torch.distributed as dist
from torch import nn
from torch.optim import Optimizer

from trainers.communication import Parallel
from trainers.overlap.machine import fingerprint
from trainers.overlap.profiler import line, side_by_side, timed, timing
from trainers.overlap.training.blocks import Blocks
from trainers.overlap.training.clock import Clock, Span
from trainers.overlap.training.layout import Layout, serial
from trainers.overlap.training.partial_steps import PartialSteps
from trainers.overlap.training.pipeline import Mark, Pipeline
from trainers.overlap.training.profile import StepProfile
from trainers.overlap.training.recording import Recording

WARM, STEPS = 1, 4  # trial steps
SUMS = 4  # of each size
PAIRS = 5
SMALL, LARGE = 2**12, 2**22  # bytes of trial sums
PARTS = (64, 16, 4)  # of all gradients, that are summed
SIDE = 256  # of the matrices of a trial product


@dataclass(frozen=True)
class Subject:
    """A trainer, as far as it is measured. steps: takes so many training steps in a given way, to be undone later.

    by_part: whether its optimizer's step can be taken by part. passes: forward and backward passes of a step.
    """

    model: nn.Module
    optimizer: Optimizer
    by_part: bool
    passes: int
    threads: int
    steps: Callable[[Parallel, int], None]

    def pipeline(self, layout: Layout, mark: Mark = lambda words: None) -> Pipeline:
        """The way of a layout."""
        return Pipeline(self.model, layout, PartialSteps(self.optimizer) if self.by_part else None, mark)

    def watched(self, layout: Layout, clock: Clock, steps: int = STEPS) -> dict[str, list[Span]]:
        """What each operation of the last steps in this way took."""
        pipeline = self.pipeline(layout, clock.mark)
        with clock.watching():
            self.steps(pipeline, WARM + steps)
        pipeline.close()
        return clock.spans()


def measured(subject: Subject, recording: Recording, blocks: Blocks, sizes: dict[str, int]) -> StepProfile:
    """This rank's profile. Called on all ranks at once, for they wait for one another."""
    places = _places(recording, blocks)
    clock = Clock(subject.model, blocks.all, places)
    spans = subject.watched(serial(blocks.all), clock)
    rejected = 0

    def seconds(name: str) -> float:
        nonlocal rejected
        samples = spans[name][len(spans[name]) // (WARM + STEPS) :]
        found = timing([end - begin for begin, end in samples])
        rejected += found.rejected
        return found.seconds

    forward = tuple(seconds(f"forward {number}") for number in range(len(places)))
    backward = tuple(seconds(f"backward {number}") for number in range(len(blocks.all)))
    return StepProfile(
        machine=fingerprint(),
        places=tuple(places),
        forward=forward,
        blocks=blocks.all,
        backward=backward,
        bytes=sizes,
        network=_network(blocks.bytes),
        memory=_memory(subject, blocks) if subject.by_part else (0.0, 0.0),
        update=0.0 if subject.by_part else seconds("update"),
        passes=(subject.passes - 1) * (sum(forward) + sum(backward)),
        speeds={"memory": _beside_copying(subject.threads), "network": _beside_sums()},
        rejected=rejected,
    )


def _places(recording: Recording, blocks: Blocks) -> list[str]:
    """Where blocks are waited for, in the order of the calls; the model's own call comes first."""
    wanted = {block.place for block in blocks.all}
    return ["", *(place for place in recording.calls if place and place in wanted)]


def _memory(subject: Subject, blocks: Blocks) -> tuple[float, float]:
    """(seconds, seconds a byte) of the optimizer's step."""
    buckets = blocks.equal(4)
    layout = Layout("overlapped", buckets, tuple(range(len(buckets))), subject.threads)
    spans = subject.watched(layout, Clock(subject.model, (), ()), steps=2)
    points = [
        (blocks.size(bucket), median(end - begin for begin, end in spans[f"optimizer {number}"][WARM:]))
        for number, bucket in enumerate(buckets)
        if blocks.size(bucket)
    ]
    return line(points) if len(points) > 1 else (sum(seconds for _, seconds in points), 0.0)


def _network(whole: int) -> tuple[float, float]:
    """(seconds, seconds a byte) of a sum over ranks of parts of the `whole`."""
    sizes = [max(SMALL, whole // part) for part in PARTS]
    return line([(size, _sum_seconds(torch.zeros(size // 4))) for size in dict.fromkeys(sizes)])


def _sum_seconds(vector: torch.Tensor) -> float:
    def summed() -> None:
        dist.barrier()
        dist.all_reduce(vector)

    return max(timed(summed, SUMS).seconds - timed(dist.barrier, SUMS).seconds, 1e-6)


def _beside_copying(threads: int) -> tuple[float, float]:
    """(R, P) of an operation that memory bounds, beside computation."""
    source, target = torch.zeros(2, LARGE)
    return side_by_side(_product(), lambda: target.copy_(source), threads, PAIRS)


def _beside_sums() -> tuple[float, float]:
    """(R, P) of a sum over ranks, beside computation on all of them."""
    vector, product = torch.zeros(LARGE // 4), _product()
    alone, quiet = timed(product, PAIRS).seconds, _sum_seconds(vector)
    sums, products = [], []
    for _ in range(SUMS):
        dist.barrier()
        count, begun = 0, perf_counter()
        work = dist.all_reduce(vector, async_op=True)
        while not count or not work.is_completed():
            product()
            count += 1
        work.wait()
        sums.append(perf_counter() - begun)
        products.append(sums[-1] / count)
    lost, kept = 1 - alone / median(products), quiet / median(sums)
    return min(max(lost, 0.01), 0.99), min(max(kept, 0.01), 1.0)


def _product() -> Callable[[], object]:
    matrix = torch.ones(SIDE, SIDE)
    return lambda: matrix @ matrix
