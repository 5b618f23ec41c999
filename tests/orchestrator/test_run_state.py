"""What an error means to a run is said in one place."""

import errno
import signal

import pytest

from orchestrator.cluster.connection import NoRoomError
from orchestrator.cluster.failures import JobFailed, Kind
from orchestrator.errors import UserError
from orchestrator.execution import TrainingDiverged
from orchestrator.run_state import RunState, classified
from orchestrator.stopping import Stopped

FINISHED, FAILED, KILLED = RunState.FINISHED, RunState.FAILED, RunState.KILLED


def failed(kind: Kind) -> JobFailed:
    return JobFailed(1, "it is gone", ["a line", "its last line"], kind, noticed=0.0)


@pytest.mark.parametrize(
    ("error", "state", "status", "again", "ours"),
    [
        (None, FINISHED, 0, False, False),
        (Stopped(signal.SIGTERM), KILLED, 143, False, False),
        (Stopped(signal.SIGINT), KILLED, 130, False, False),
        (UserError("seed is -1"), FAILED, 2, False, False),
        (NoRoomError("need 4, have 2"), FAILED, 2, True, False),
        (failed(Kind.DIED), FAILED, 1, True, False),
        (failed(Kind.SILENT), FAILED, 1, True, False),
        (failed(Kind.RAISED), FAILED, 1, True, False),
        (failed(Kind.FAULTY), FAILED, 1, False, False),
        (TrainingDiverged(1, 0, 7, float("nan"), 0.1), FAILED, 1, True, False),
        (OSError(errno.ENOSPC, "No space left on device", "weights"), FAILED, 2, False, False),
        (OSError(errno.EACCES, "Permission denied"), FAILED, 1, False, True),
        (KeyError("a fault of ours"), FAILED, 1, False, True),
        (SystemExit(3), FAILED, 1, False, True),
    ],
)
def test_every_error_has_one_meaning(
    error: BaseException | None, state: RunState, status: int, again: bool, ours: bool
) -> None:
    outcome = classified(error)
    assert (outcome.state, outcome.status, outcome.again, outcome.ours) == (state, status, again, ours)
    assert (outcome.reason is None) == (error is None)


def test_the_last_words_of_a_worker_are_kept() -> None:
    assert classified(failed(Kind.DIED)).reason == ("rank 1 failed: it is gone; its last words:\na line\nits last line")
