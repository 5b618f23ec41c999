"""The numbers of a run are sums over its events."""

from pathlib import Path

import pytest

from orchestrator.events import (
    JobReady,
    ProbeRan,
    RunEnded,
    RunResumed,
    Scored,
    SnapshotSaved,
    StepsTrained,
    Validated,
)
from orchestrator.journal_file import read_journal
from orchestrator.summary import ACTIVITIES, summarise

DATA = Path(__file__).parent.parent / "data"

EVENTS = [
    JobReady(2, "cpu", 10, 4.0),
    ProbeRan(1, "search", 0, [0.1, 0.1], [3.0, 2.0], [(2, 2.5)], 1.0, 0.5, 0.25),
    StepsTrained(1, 0, [0.1, 0.1], [3.0, 2.0], 2.0),
    StepsTrained(1, 2, [0.1, 0.2], [2.0, 1.0], 2.0),
    Validated(4, "validation", {"loss": 1.5, "accuracy": 0.7}, 0.5),
    SnapshotSaved(4, "snapshots/step-000004", 0.125),
    Validated(4, "test", {"loss": 1.6}, 0.5),
    Scored(4, {"bits": 2.0}, [], 1.0),
]


def test_steps_seconds_and_losses() -> None:
    summary = summarise(EVENTS, wall_seconds=20.0)
    assert summary["seconds"] == {
        "search": 1.5, "training": 4.0, "validation": 2.0, "restoring": 0.375, "waiting": 12.125}  # fmt: skip
    assert sum(summary["seconds"].values()) == 20.0
    assert (summary["train_steps"], summary["probe_steps"]) == (4, 2)
    assert summary["train_loss"] == pytest.approx(2.0)
    assert summary["validation_loss"] == 1.5
    assert summary["validation"] == {"loss": 1.5, "accuracy": 0.7}
    assert summary["test"] == {"loss": 1.6}
    assert summary["scores"] == {"bits": 2.0}
    assert summary["lr_by_step"] == [(0, 0.1), (3, 0.2)]


def test_the_train_loss_is_that_of_the_last_steps() -> None:
    losses = [10.0] * 100 + [1.0] * 20
    assert summarise([StepsTrained(0, 0, [0.1] * 120, losses, 1.0)])["train_loss"] == 1.0


def test_waiting_is_the_start_alone_where_the_wall_time_is_unknown() -> None:
    assert summarise(EVENTS)["seconds"]["waiting"] == 4.0


def test_the_wall_time_is_taken_from_the_result() -> None:
    ended = RunEnded("FINISHED", None, {"wall_seconds": 30.0})
    assert sum(summarise([*EVENTS, ended])["seconds"].values()) == 30.0


def test_time_spent_twice_counts_twice_but_steps_once() -> None:
    again = [RunResumed(0, None), *EVENTS]
    once, twice = summarise(EVENTS), summarise([*EVENTS[:4], *again])
    assert twice["train_steps"] == once["train_steps"]
    assert twice["probe_steps"] == once["probe_steps"]
    assert twice["lr_by_step"] == once["lr_by_step"]
    assert twice["seconds"]["training"] == 2 * once["seconds"]["training"]


def test_of_nothing() -> None:
    summary = summarise([])
    assert summary["seconds"] == dict.fromkeys(ACTIVITIES, 0.0)
    assert (summary["train_loss"], summary["validation_loss"], summary["lr_by_step"]) == (None, None, [])


def test_a_schedule_has_a_stretch_for_each_of_its_rates() -> None:
    events = read_journal(DATA / "journal_cosine.jsonl")
    stretches = summarise(events)["lr_by_step"]
    rates = [rate for event in events if isinstance(event, StepsTrained) for rate in event.rates]
    unrolled = [
        rate
        for (first, rate), (following, _) in zip(stretches, [*stretches[1:], (800, 0.0)], strict=True)
        for _ in range(first, following)
    ]
    assert unrolled == rates
