"""Snapshots beside the training: one at a time, told of when they are on disk, and never the end of a run."""

import time
from pathlib import Path
from typing import Any

from orchestrator.cluster.snapshots import SnapshotStore
from orchestrator.events import Event, SnapshotFailed, SnapshotSaved
from orchestrator.execution import Progress
from orchestrator.learning_rate.scheduled import ConstantOptions, Scheduled
from orchestrator.saving import Saving


class Slow:
    """A job that writes for as long as it is told to, or cannot."""

    def __init__(self) -> None:
        self.writing = self.full = False

    def save(self, folder: Path) -> dict[str, Any]:
        content = self.begin_save(folder)
        self.finish_save(folder)
        return content

    def begin_save(self, folder: Path) -> dict[str, Any]:
        (folder / "state").write_text("all of it")
        return {"world_size": 1}

    def is_saving(self) -> bool:
        return self.writing

    def finish_save(self, folder: Path) -> None:
        if self.full:
            raise OSError("rank 0 could not write it: No space left on device")


def saving(place: Path, job: Slow, told: list[Event], every: int | None = 10, keep: int = 2) -> Saving:
    return Saving(job, SnapshotStore(place, keep), Scheduled(100, ConstantOptions(stages=2)), told.append, every)


def within(saving: Saving, step: int) -> None:
    saving.within_stage(step, Progress(0, 1.0, [0.5] * step, [(step, 0.4)]))


def eventually_told(saving: Saving, told: list[Event], step: int) -> None:
    until = time.monotonic() + 30
    while not told and time.monotonic() < until:
        within(saving, step)
        time.sleep(0.01)


def test_one_at_a_time_and_only_where_due(tmp_path: Path) -> None:
    job, told = Slow(), []
    with saving(tmp_path, job, told) as snapshots:
        within(snapshots, 5)
        job.writing = True
        within(snapshots, 10)
        within(snapshots, 20)  # still busy
        assert [path.name for path in tmp_path.glob("step-*")] == []
        job.writing = False
        eventually_told(snapshots, told, 21)
    (saved,) = told
    assert isinstance(saved, SnapshotSaved)
    assert (saved.step, saved.path) == (10, "snapshots/step-000010-within")
    found, _ = SnapshotStore(tmp_path).newest()
    assert found is not None
    assert found.content["within"] == {"first_step": 0, "factor": 1.0, "losses": [0.5] * 10, "validation": [[10, 0.4]]}
    assert found.content["policy"] == {"stage": 0}


def test_without_a_number_there_is_none_within_a_stage(tmp_path: Path) -> None:
    told: list[Event] = []
    with saving(tmp_path, Slow(), told, every=None) as snapshots:
        within(snapshots, 10)
        snapshots.at_stage_end(50)
    assert [type(event) for event in told] == [SnapshotSaved]


def test_a_stage_end_waits_for_what_is_under_way_and_is_kept(tmp_path: Path) -> None:
    told: list[Event] = []
    with saving(tmp_path, Slow(), told, keep=1) as snapshots:
        within(snapshots, 40)
        snapshots.at_stage_end(50)
        assert [event.step for event in told] == [40, 50]  # type: ignore[union-attr]
        within(snapshots, 60)
        snapshots.at_stage_end(65)
        within(snapshots, 70)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-000065"]  # the one at 70 was not whole


def test_a_failure_is_told_once_and_older_ones_stay(tmp_path: Path) -> None:
    job, told = Slow(), []
    with saving(tmp_path, job, told) as snapshots:
        snapshots.at_stage_end(50)
        job.full = True
        for step in (60, 61, 70, 71):
            within(snapshots, step)
        snapshots.at_stage_end(100)
        assert [type(event) for event in told] == [SnapshotSaved, SnapshotFailed]
        assert "No space left on device; training goes on" in told[1].reason  # type: ignore[union-attr]
        assert [path.name for path in tmp_path.iterdir()] == ["step-000050"]
        job.full = False
        snapshots.at_stage_end(110)
        job.full = True
        snapshots.at_stage_end(120)
    assert [type(event) for event in told[2:]] == [SnapshotSaved, SnapshotFailed]
