"""The seam between programs and the network: what every transport gives, and the job it gives for each collective."""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Event, Lock
from time import monotonic
from typing import Protocol

from torch import Tensor

from comm_plans.errors import PlansError
from comm_plans.runtime.program import RankProgram

LOGGER = logging.getLogger(__name__)


class TransportError(PlansError, RuntimeError):
    """A collective could not be carried out; its text says which ranks, and what to do.

    A RuntimeError too, as that is what callers of torch's collectives expect.
    """


class Transport(Protocol):
    """Carries out programs. Every rank submits the same programs in the same order, with buffers of one size and type.

    After an error every further submission fails: make a new transport.
    """

    def submit(self, program: RankProgram, buffer: Tensor) -> Job:
        """Start a collective on a flat, contiguous CPU buffer, in place; leave the buffer alone until the job is done.

        all_reduce: the vector, afterwards the sum. broadcast: the root's buffer, afterwards everybody's. reduce: the
        vector, afterwards the sum at the root and partial sums elsewhere. all_gather: the gathered buffer, in which the
        rank has filled in its own shard. reduce_scatter: the full vector, afterwards the sum in the rank's own shard
        and partial sums elsewhere. Sums are added up in a fixed order, in the buffer's type.
        Raises TransportError at once after an earlier failure, and where ranks hold different plans.
        """

    def release(self, program: RankProgram) -> None:
        """Wait for the program's jobs and give up its connections: so plans are swapped between jobs, on all ranks."""

    def close(self, reason: str = "the transport was closed") -> None:
        """Fail the jobs that are not done, for this reason; afterwards no thread and no file of it is left."""


class Job:
    """One collective under way. `error` and `seconds` (from submission to the end) are set once it is done."""

    def __init__(self) -> None:
        self.error: TransportError | None = None
        self.seconds = 0.0
        self.started = monotonic()
        self._done = Event()
        self._lock = Lock()
        self._callbacks: list[Callable[[Job], None]] = []

    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return self._done.is_set()

    def wait(self, timeout: float | None = None) -> None:
        """Wait for its end, at most `timeout` seconds. Raises TransportError if it failed or has not ended by then."""
        if not self._done.wait(timeout):
            raise TransportError(f"the collective has not ended after {timeout:g} s; look for a rank that lags behind")
        if self.error:
            raise self.error

    def add_done_callback(self, callback: Callable[[Job], None]) -> None:
        """Call `callback` with this job when it ends, in the transport's thread; at once if it has ended."""
        with self._lock:
            if not self.done():
                self._callbacks.append(callback)
                return
        callback(self)

    def finish(self, error: TransportError | None = None) -> None:
        """End it, once; later calls change nothing. A callback that fails is logged and harms nobody else."""
        with self._lock:
            if self.done():
                return
            self.error, self.seconds = error, monotonic() - self.started
            self._done.set()
        for callback in self._callbacks:
            try:
                callback(self)
            except Exception:
                LOGGER.exception("a callback of a collective failed")
