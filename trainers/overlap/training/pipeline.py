"""Training steps in which gradients travel and parameters step while the next things compute.

A bucket's sum starts when its last gradient is there and those before it in the launch order have started. All ranks
compute in one thread and start sums in it, so that all collectives of a rank have one order. A worker waits for the
sums, in that order, and steps the bucket's parameters. The next step's forward pass waits for a bucket right before the
module that uses it. Where the optimizer needs all gradients at once, the step waits for all buckets instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event

import torch.distributed as dist
from torch import nn
from torch.nn import Parameter
from torch.utils.hooks import RemovableHandle

from trainers.errors import OverlapError
from trainers.overlap.agreement import Notices
from trainers.overlap.executor.worker import Worker
from trainers.overlap.training.buckets import Bucket
from trainers.overlap.training.buffers import SharedBuffers
from trainers.overlap.training.layout import Layout
from trainers.overlap.training.partial_steps import PartialSteps
from trainers.overlap.training.recording import trainable
from trainers.sharding import shards

PERIOD = 0.25  # seconds between two looks for a rank that has failed
Mark = Callable[[str], None]


class Pipeline:
    """Hooks on a model that carry out a layout. steps: the optimizer's, in parts; None: its caller steps everything.

    mark: told what begins or ends, as `reduce 3 begins`. Every rank makes it, with the same layout.
    """

    def __init__(
        self, model: nn.Module, layout: Layout, steps: PartialSteps | None, mark: Mark = lambda words: None
    ) -> None:
        self.model = model
        self._layout, self._steps, self._mark = layout, steps, mark
        self._buckets = _buckets(model, layout)
        self._order = [self._buckets[number] for number in layout.order]
        self._buffers = SharedBuffers(model)
        self._notices = Notices()
        self._failure: OverlapError | None = None
        self._summing = False
        self._started = 0
        self._worker = Worker("overlapped steps", layout.threads, self._failed)
        self._hooks = [*self._arrival_hooks(), *self._waiting_hooks(model)]

    def begin(self, rate: float) -> None:
        """Start a step: its optimizer's rate, and what the model needs before it is called."""
        for bucket in self._buckets:
            bucket.begin()
        self._started = 0
        self._buffers.take()
        for bucket, planned in zip(self._buckets, self._layout.buckets, strict=True):
            if planned.place is None:
                self._wait(bucket)
        if self._steps:
            self._worker.put(partial(self._steps.begin, rate))

    @contextmanager
    def summing(self, last: bool) -> Iterator[None]:
        """Sum the gradients of the backward pass inside over ranks as they come, if they are the step's last."""
        self._summing = last
        try:
            yield
        finally:
            self._summing = False

    def end(self, update: Callable[[], None]) -> None:
        """The backward passes of a step are over. Returns at once where the next step may begin before its end."""
        missing = [name for bucket in self._buckets for name in bucket.missing]
        if missing:
            raise OverlapError(
                f"The parameter {missing[0]} got no gradient in this step; freeze it, use it, or take overlap=off."
            )
        if self._steps:
            self._worker.put(self._steps.end)
        if self._steps is None or self._layout.mode == "serial":
            self.flush()
        if self._steps is None:
            self._mark("update begins")
            update()
            self._mark("update ends")

    def flush(self) -> None:
        """Wait until all that was begun is done."""
        for bucket in self._order:
            self._wait(bucket)
        done = Event()
        self._worker.put(done.set)
        self._until(done)
        self._buffers.take()

    def close(self) -> None:
        """Leave the model as it was."""
        self.flush()
        for hook in self._hooks:
            hook.remove()
        self._worker.close()

    def _arrival_hooks(self) -> Iterator[RemovableHandle]:
        for number, bucket in enumerate(self._buckets):
            for parameter in bucket.parameters:
                yield parameter.register_post_accumulate_grad_hook(partial(self._arrived, number, bucket))

    def _waiting_hooks(self, model: nn.Module) -> Iterator[RemovableHandle]:
        for bucket, planned in zip(self._buckets, self._layout.buckets, strict=True):
            if planned.place is not None:
                module = model.get_submodule(planned.place)
                yield module.register_forward_pre_hook(lambda *_, bucket=bucket: self._wait(bucket))

    def _arrived(self, number: int, bucket: Bucket, parameter: Parameter) -> None:
        """A gradient of the step's last backward pass is complete on this rank."""
        if not self._summing:
            return
        self._buffers.send()
        bucket.take(parameter)
        while self._started < len(self._order) and self._order[self._started].complete:
            self._start(self._layout.order[self._started])
            self._started += 1

    def _start(self, number: int) -> None:
        bucket = self._buckets[number]
        self._mark(f"reduce {number} begins")
        works = bucket.reduce()
        self._worker.put(lambda: self._settle(number, bucket, works))

    def _settle(self, number: int, bucket: Bucket, works: list[dist.Work]) -> None:
        """In the worker: once the sum is there, step."""
        for work in works:
            work.wait()
        self._mark(f"reduce {number} ends")
        if self._steps:
            self._mark(f"optimizer {number} begins")
            self._steps.step(bucket.parameters)
            bucket.release()
            self._mark(f"optimizer {number} ends")
        bucket.settled.set()

    def _wait(self, bucket: Bucket) -> None:
        self._until(bucket.settled)
        bucket.awaited = True

    def _until(self, event: Event) -> None:
        """Wait for it. OverlapError with the reason where this or another rank has failed."""
        while not (self._failure or event.wait(PERIOD)):
            if reason := self._notices.heard():
                self._failure = OverlapError(f"The overlapped step has failed on {reason}")
        if self._failure:
            raise self._failure

    def _failed(self, error: BaseException) -> None:
        """In the worker: let all threads and all ranks know."""
        words = f"{type(error).__name__}: {error}"
        self._failure = OverlapError(f"The overlapped step has failed: {self._notices.heard() or words}")
        self._failure.__cause__ = error
        self._notices.post(words)
        for bucket in self._buckets:
            bucket.settled.set()


def _buckets(model: nn.Module, layout: Layout) -> list[Bucket]:
    parameters, sharded = trainable(model), shards(model)
    return [
        Bucket(
            {name: parameters[name] for name in planned.parameters if name not in sharded},
            {name: parameters[name] for name in planned.parameters if name in sharded},
        )
        for planned in layout.buckets
    ]
