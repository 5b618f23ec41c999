"""A run that was interrupted anywhere and resumed adds up to the same as one that was not."""

from pathlib import Path

import pytest

from orchestrator.events import (
    Event,
    JobReady,
    Recovered,
    RunEnded,
    RunResumed,
    SnapshotSaved,
    StepsTrained,
    Validated,
    Warned,
)
from orchestrator.history import History, history
from orchestrator.journal_file import read_journal

RUN = read_journal(Path(__file__).parent.parent / "data" / "journal_autolrs.jsonl")


def resumed(killed_after: int, keeps_search: bool) -> list[Event]:
    """What the journal holds if the run dies after that many events and goes on from its last snapshot.

    The search begun after the snapshot is either taken up from the journal or made again.
    """
    before = RUN[:killed_after]
    saved = [index for index, event in enumerate(before) if isinstance(event, SnapshotSaved)]
    begin = saved[-1] + 1 if saved else 3  # the first three events are there before any step
    trained = next((at for at in range(begin, len(before)) if isinstance(before[at], StepsTrained)), len(before))
    snapshot = RUN[saved[-1]] if saved else None
    step = snapshot.step if isinstance(snapshot, SnapshotSaved) else 0
    return [
        *before,
        RunEnded("KILLED", "the process was ended", {}),
        RunResumed(step, None),
        JobReady(2, "cpu", 812416, 5.0),
        *RUN[trained if keeps_search else begin :],
    ]


def same(one: History, other: History) -> bool:
    return (one.segments, one.stages, one.validations, one.scores, one.found, one.ended) == (
        other.segments, other.stages, other.validations, other.scores, other.found, other.ended)  # fmt: skip


@pytest.mark.parametrize("keeps_search", [True, False])
def test_killed_after_any_event(keeps_search: bool) -> None:
    undisturbed = history(RUN)
    for killed_after in range(3, len(RUN)):
        story = history(resumed(killed_after, keeps_search))
        assert same(story, undisturbed), killed_after
        assert story.resumed == 1


def test_a_run_in_order() -> None:
    story = history(RUN)
    assert (story.train_steps, story.probe_steps) == (800, 517)
    assert [stage.number for stage in story.stages.values()] == [0, 1, 2, 3, 4]
    assert [stage.first_step for stage in story.stages.values()] == [0, 0, 60, 180, 420]
    assert [len(stage.probes) for stage in story.stages.values()] == [1, 6, 6, 6, 6]
    assert [each.kind for each in story.segments].count("train") == 4
    assert story.segments[-1].end == 800 + 517


def test_real_steps_have_their_place_among_all_steps() -> None:
    story = history(RUN)
    probed_before = sum(len(each.rates) for each in story.segments[:7])  # range test and the search of stage 1
    assert story.total_steps(0) == 0
    assert story.total_steps(60) == probed_before + 60  # stage 1 is over, the search of stage 2 has not begun
    assert story.total_steps(800) == 800 + 517


def test_warnings_outlive_a_resume_and_the_end_counts_only_if_last() -> None:
    story = history([*RUN[:40], Warned("the disk is nearly full"), RunEnded("KILLED", None, {}), RunResumed(0, None)])
    assert story.warnings == ["the disk is nearly full"]
    assert story.ended is None


def test_nothing_yet() -> None:
    story = history([])
    assert (story.train_steps, story.probe_steps, story.total_steps(5)) == (0, 0, 0)


def test_steps_behind_a_snapshot_within_a_stage_count_once() -> None:
    def steps(first: int, last: int) -> StepsTrained:
        return StepsTrained(1, first, [0.1] * (last - first), [float(step) for step in range(first, last)], 1.0)

    before = [steps(0, 10), Validated(10, "validation", {"loss": 1.0}, 0.1), steps(10, 20)]
    told_late = SnapshotSaved(10, "snapshots/step-000010-within", 0.1)
    after = [Validated(20, "validation", {"loss": 0.9}, 0.1), steps(20, 30)]
    recovered = Recovered(10, "step-000010-within", "died", 1, "its process died", 20, 5.0)
    again = [steps(10, 20), Validated(20, "validation", {"loss": 0.9}, 0.1), steps(20, 40)]
    story = history([*before, told_late, *after, recovered, *again])
    (segment,) = story.segments
    assert segment.losses == [float(step) for step in range(40)]
    assert [each.step for each in story.validations] == [10, 20]
    assert story.recoveries == [recovered]
