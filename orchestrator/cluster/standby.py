"""A second gang that has loaded all that takes long, for the moment in which the first one fails.

Starting processes and importing torch is most of what a recovery takes. Those who stand by hold no resources, only
memory, so they are for a Ray of our own.
"""

from contextlib import suppress
from threading import Event, Thread
from types import TracebackType
from typing import Self

from orchestrator.cluster.failures import JobFailed
from orchestrator.cluster.gang import Gang
from orchestrator.cluster.job_spec import JobSpec
from orchestrator.cluster.patience import Patience
from orchestrator.errors import UserError

FIRST_SECONDS = 30.0
_ANSWER_SECONDS = 3.0


class Standby:
    """Prepares one gang at a time beside the training; it ends with the block, unless it was taken."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._delay = FIRST_SECONDS
        self._spec: JobSpec | None = None
        self._gang: Gang | None = None
        self._thread: Thread | None = None
        self._over = Event()

    def prepare(self, spec: JobSpec) -> None:
        """Get a gang ready for this job: the first after a while, so that a short run does not pay for it."""
        self._spec = spec
        self._thread = Thread(target=self._prepare, args=(spec, self._delay), name="standby", daemon=True)
        self._thread.start()
        self._delay = 0.0

    def taken(self, spec: JobSpec) -> Gang | None:
        """The gang, if one is ready for just this job; the caller ends it."""
        self._over.set()  # of its delay
        if self._thread is not None:
            self._thread.join()
        self._over.clear()
        gang, self._gang = self._gang, None
        if gang is not None and not (spec == self._spec and gang.answers(_ANSWER_SECONDS)):
            gang.end()
            return None
        return gang

    def left(self, gang: Gang) -> None:
        """A training needs it no longer, and there is none after it."""
        gang.end()

    def _prepare(self, spec: JobSpec, delay: float) -> None:
        if self._over.wait(delay):
            return
        with suppress(JobFailed, UserError):
            gang = Gang(spec, self._patience, standing_by=True)
            gang.call("import_trainer")
            self._gang = gang

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._gang is not None:
            self._gang.end()
