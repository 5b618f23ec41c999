"""When new workers go on, and when the run ends instead."""

import time
from types import SimpleNamespace

from orchestrator.cluster.connection import NoRoomError
from orchestrator.cluster.failures import JobFailed, Kind
from orchestrator.config import ClusterConfig
from orchestrator.events import Event, RateLowered, Recovered, RunResumed, SnapshotSaved, StepsTrained, Warned
from orchestrator.execution import TrainingDiverged
from orchestrator.recovery import MOST_HALVINGS, Recovery


class Record:
    """Of the events of one run."""

    def __init__(self, *events: Event) -> None:
        self.events: list[Event] = list(events)

    def emit(self, event: Event) -> None:
        self.events.append(event)


def recovery(record: Record, **cluster: object) -> Recovery:
    options = {"address": "local", "workers": 2, "cpus_per_worker": 1, "gpus_per_worker": 0, "dashboard": False}
    config = SimpleNamespace(cluster=ClusterConfig(**{**options, **cluster}))
    return Recovery(config, record)  # type: ignore[arg-type]


def died() -> JobFailed:
    return JobFailed(1, "its process died", [], Kind.DIED, time.monotonic())


def test_failures_count_only_without_progress_in_between() -> None:
    record = Record(Warned("begun"))
    careful = recovery(record, max_failures=2)
    assert not careful.goes_on
    assert careful.allows(died())
    assert careful.goes_on
    assert careful.allows(died())
    record.emit(StepsTrained(1, 0, [0.1], [1.0], 0.1))  # lost with the next failure: no progress
    assert not careful.allows(died())
    record.emit(SnapshotSaved(10, "snapshots/step-000010", 0.1))
    assert careful.allows(died())


def test_what_was_lost_is_told() -> None:
    record = Record(Warned("begun"))
    careful = recovery(record)
    record.emit(StepsTrained(1, 0, [0.1] * 30, [1.0] * 30, 0.1))
    careful.allows(died())
    careful.taken_up(10, "step-000010-within")
    assert isinstance(told := record.events[-1], Recovered)
    assert (told.step, told.snapshot, told.what, told.rank, told.lost_steps) == (
        10,
        "step-000010-within",
        "died",
        1,
        20,
    )
    assert 0 <= told.seconds < 60


def test_a_run_taken_up_by_a_person_says_so() -> None:
    record = Record(Warned("begun"), StepsTrained(1, 0, [0.1], [1.0], 0.1))
    careful = recovery(record)
    assert careful.goes_on
    careful.taken_up(0, None)
    assert record.events[-1] == RunResumed(0, None)


def test_rates_are_halved_so_often_and_hold_for_their_stage() -> None:
    record = Record(Warned("begun"))
    careful = recovery(record)
    for times in range(MOST_HALVINGS):
        assert careful.allows(TrainingDiverged(2, 100, 130, float("nan"), 0.1))
        assert record.events[-1].factor == 0.5 ** (times + 1)  # type: ignore[union-attr]
    assert not careful.allows(TrainingDiverged(2, 100, 130, float("nan"), 0.1))
    assert careful.factor_at(2, 100) == careful.factor_at(2, 150) == 0.125
    assert careful.factor_at(1, 0) == careful.factor_at(2, 50) == careful.factor_at(3, 200) == 1.0
    again = recovery(Record(*record.events))  # of a later process
    assert again.factor_at(2, 100) == 0.125
    assert sum(isinstance(event, RateLowered) for event in record.events) == MOST_HALVINGS


def test_room_is_waited_for_only_where_there_was_room_before() -> None:
    record = Record(Warned("begun"))
    careful = recovery(record, node_seconds=0.5)
    assert not careful.allows(NoRoomError("need 2, have 1"))
    assert careful.allows(died())
    assert careful.allows(NoRoomError("need 2, have 1"))
    assert not careful.allows(NoRoomError("need 2, have 1"))  # a second later
