"""How a rank's failure is told: what Ray reports of it, made into one sentence and a kind that says what may help."""

from dataclasses import dataclass, field
from enum import StrEnum
from time import monotonic
from typing import Any

from orchestrator.errors import UserError

_FAULTS_OF_CODE = (
    ValueError, TypeError, LookupError, AttributeError, NameError, AssertionError, ImportError, ArithmeticError,
    NotImplementedError, SyntaxError,
)  # fmt: skip


class Kind(StrEnum):
    """What a rank did instead of answering."""

    DIED = "died"
    SILENT = "silent"
    RAISED = "raised"  # an error that may pass: of the network, of a device, of the system
    FAULTY = "faulty"  # an error of the code that it runs, which comes again each time


class JobFailed(Exception):  # noqa: N818
    """A rank failed and the gang was ended. `sentence` says what happened, `log` holds the rank's last lines.

    noticed: when it was first known that something was wrong, by the monotonic clock.
    """

    def __init__(self, rank: int, sentence: str, log: list[str], kind: Kind, noticed: float) -> None:
        super().__init__(f"rank {rank} failed: {sentence}")
        self.rank, self.sentence, self.log, self.kind, self.noticed = rank, sentence, log, kind, noticed


@dataclass(frozen=True)
class Failure:
    """How one rank's call went wrong. `died`: the process is gone, which other ranks' errors are echoes of."""

    rank: int
    error: Exception
    died: bool
    noticed: float = field(default_factory=monotonic)


def failure_of(rank: int, reference: Any) -> Failure | None:
    """How a finished call failed, or None if it did not."""
    import ray

    try:
        ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        return Failure(rank, error, died=False)
    except ray.exceptions.RayError as error:
        return Failure(rank, error, died=True)
    return None


def told(failure: Failure, log: list[str]) -> Exception:
    """What the driver raises: a UserError for what the person can mend in data or configuration, else a JobFailed."""
    from trainers.errors import DataError

    if failure.died:
        return JobFailed(failure.rank, _death(failure.error), log, Kind.DIED, failure.noticed)
    cause = getattr(failure.error, "cause", failure.error)
    if isinstance(cause, UserError | DataError):
        return UserError(str(cause))
    kind = Kind.FAULTY if isinstance(cause, _FAULTS_OF_CODE) else Kind.RAISED
    return JobFailed(failure.rank, f"{type(cause).__name__}: {cause}", log, kind, failure.noticed)


def _death(error: Exception) -> str:
    """Why a process is gone, in a sentence out of Ray's paragraph."""
    if "running low on memory" in str(error):
        return "its process was ended because the node ran low on memory; use fewer workers or a smaller batch_size"
    return "its process died unexpectedly (killed from outside, out of memory, or crashed in native code)"
