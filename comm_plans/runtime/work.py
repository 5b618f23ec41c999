"""A planned collective as torch waits for it: truly asynchronous, and an error for whoever waits, never wrong data.

torch offers a Python future no safe way to fail: one that was made to fail and is given to DDP ends the interpreter,
and `all_reduce` would return as if all were well. What works is a future that a callback completes, and that callback
raises.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch.distributed as dist
from torch import Tensor
from torch.futures import Future

from comm_plans.runtime.transport import Job, TransportError


class PlannedWork(dist.Work):
    """Waits for a transport's job and for `finish`, which puts the result where it belongs and gives its tensors."""

    def __init__(self, job: Job, finish: Callable[[], list[Tensor]]) -> None:
        super().__init__()
        self._job = job
        begun: Future[Any] = Future()
        self._future: Future[list[Tensor]] = begun.then(lambda _: _finished(job, finish))
        job.add_done_callback(lambda _: begun.set_result(None))

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Wait for the result, at most `timeout`, or without limit where that is zero. Raises TransportError."""
        seconds = timeout.total_seconds()
        self._job.wait(seconds if seconds > 0 else None)
        self._future.wait()
        return True

    def get_future(self) -> Future[list[Tensor]]:
        """The tensors of the result; raises RuntimeError where the collective failed."""
        return self._future

    def is_completed(self) -> bool:
        """Whether it has ended, well or not."""
        return self._future.done()

    def is_success(self) -> bool:
        """Whether it has ended well."""
        return self._future.done() and self._job.error is None

    def exception(self) -> TransportError | None:
        """Why it failed, if it has."""
        return self._job.error

    def result(self) -> list[Tensor]:
        """The tensors of the result, once there."""
        return self._future.wait()


def _finished(job: Job, finish: Callable[[], list[Tensor]]) -> list[Tensor]:
    if job.error:
        raise job.error
    return finish()
