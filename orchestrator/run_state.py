"""The states of a run, and the one place that says what an error means to it."""

import errno
from dataclasses import dataclass
from enum import StrEnum

from orchestrator.cluster.connection import NoRoomError
from orchestrator.cluster.failures import JobFailed, Kind
from orchestrator.errors import UserError
from orchestrator.execution import TrainingDiverged
from orchestrator.stopping import Stopped


class RunState(StrEnum):
    """A run that replaces failed workers is RUNNING; one whose driver was killed is KILLED as soon as that is seen."""

    RUNNING = "RUNNING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    KILLED = "KILLED"


@dataclass(frozen=True)
class Outcome:
    """What came of a launch. `status`: the command's exit status. `again`: whether new workers may get further.

    ours: whether it is a fault of this program, to be seen whole.
    """

    state: RunState
    reason: str | None
    status: int
    again: bool = False
    ours: bool = False


def classified(error: BaseException | None) -> Outcome:
    """The one place that says what an error means to a run; None: there was none."""
    match error:
        case None:
            return Outcome(RunState.FINISHED, None, 0)
        case Stopped():
            return Outcome(RunState.KILLED, str(error), 128 + error.number)
        case NoRoomError():
            return Outcome(RunState.FAILED, str(error), 2, again=True)
        case UserError():
            return Outcome(RunState.FAILED, str(error), 2)
        case JobFailed():
            reason = "\n".join([f"{error}; its last words:" if error.log else str(error), *error.log])
            return Outcome(RunState.FAILED, reason, 1, again=error.kind != Kind.FAULTY)
        case TrainingDiverged():
            return Outcome(RunState.FAILED, str(error), 1, again=True)
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            place = f" at {error.filename}" if error.filename else ""
            return Outcome(RunState.FAILED, f"the disk is full{place}; make room, then go on with the run", 2)
    return Outcome(RunState.FAILED, f"{type(error).__name__}: {error}", 1, ours=True)
