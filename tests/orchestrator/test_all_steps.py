"""What is told of all steps while a run goes on is what its whole story says once it is over."""

from pathlib import Path

import pytest

from orchestrator.all_steps import AllSteps
from orchestrator.events import (
    ArmTakenUp,
    Event,
    ProbeRan,
    Recovered,
    RunResumed,
    SnapshotSaved,
    StepsTrained,
    Validated,
)
from orchestrator.history import history
from orchestrator.journal_file import read_journal

RUN = read_journal(Path(__file__).parent.parent / "data" / "journal_autolrs.jsonl")


def probe(arm: str, taken: int, losses: list[float]) -> ProbeRan:
    rates = [0.1] * len(losses)
    return ProbeRan(1, "search", 0, rates, losses, [], 0.1, 0.0, 0.0, arm, taken)


ARMS = [
    probe("a", 0, [3.0, 2.9]),
    probe("b", 0, [3.0, 2.8]),
    probe("b", 2, [2.7, 2.6]),
    ArmTakenUp(1, "b", 0, [0.1] * 4, [3.0, 2.8, 2.7, 2.6], 0.1),
    StepsTrained(1, 4, [0.1, 0.1], [2.5, 2.4], 0.1),
    Validated(6, "validation", {"loss": 2.3}, 0.0),
]


def told(events: list[Event], earlier: list[Event]) -> tuple[dict[int, float], dict[int, float]]:
    """Train and validation losses by all steps, the last one said of each."""
    steps = AllSteps(earlier)
    train: dict[int, float] = {}
    validation: dict[int, float] = {}
    for event in events:
        steps.note(event)
        if isinstance(event, StepsTrained | ArmTakenUp):
            train |= dict(steps.train_losses(event))
        elif isinstance(event, Validated) and event.split == "validation":
            validation |= dict([steps.validation_loss(event)])
    return train, validation


def whole(events: list[Event]) -> tuple[dict[int, float], dict[int, float]]:
    story = history(events)
    trained = [segment for segment in story.segments if segment.kind == "train"]
    train = {at: loss for part in trained for at, loss in enumerate(part.losses, start=part.start + 1)}
    validated = [each for each in story.validations if each.split == "validation"]
    return train, {story.total_steps(each.step): each.metrics["loss"] for each in validated}


@pytest.mark.parametrize("events", [RUN, ARMS])
def test_an_undisturbed_run(events: list[Event]) -> None:
    assert told(events, []) == whole(events)


def test_trials_that_were_taken_up_lie_where_they_were_made() -> None:
    train, validation = told(ARMS, [])
    assert train == {3: 3.0, 4: 2.8, 5: 2.7, 6: 2.6, 7: 2.5, 8: 2.4}
    assert validation == {8: 2.3}


def test_steps_that_are_taken_again_lie_where_the_lost_ones_lay() -> None:
    saved = SnapshotSaved(4, "snapshots/step-000004", 0.0)
    again = [StepsTrained(1, 4, [0.1], [2.45], 0.1), Validated(5, "validation", {"loss": 2.2}, 0.0)]
    for back in (RunResumed(4, None), Recovered(4, None, "died", 1, "killed", 2, 1.0)):
        assert told([back, *again], [*ARMS[:4], saved, *ARMS[4:]]) == ({7: 2.45}, {7: 2.2})
