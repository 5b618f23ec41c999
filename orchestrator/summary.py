"""The numbers of a run, from its events alone: steps, seconds by activity, losses, the rate of every step.

Steps and losses are those of an undisturbed run; seconds are all that were really spent, repetitions included.
"""

import math
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import TypedDict

from orchestrator.events import ArmTakenUp, Event, JobReady, ProbeRan, Scored, SnapshotSaved, StepsTrained, Validated
from orchestrator.history import History, history

ACTIVITIES = ("search", "training", "validation", "restoring", "waiting")

_LAST_STEPS = 20  # one batch's loss is noise: the train loss is the mean of these


class Summary(TypedDict):
    """`seconds` has one entry for each of ACTIVITIES. Losses are None where nothing was measured."""

    train_steps: int
    probe_steps: int
    seconds: dict[str, float]
    train_loss: float | None
    validation_loss: float | None
    validation: dict[str, float]
    test: dict[str, float]
    scores: dict[str, float]
    lr_by_step: list[tuple[int, float]]


def summarise(events: Sequence[Event], wall_seconds: float | None = None) -> Summary:
    """Add up a run. `wall_seconds` is the whole run's time, by default what its result says.

    `search` is training and validating in probes that were thrown away, `restoring` is keeping, saving and bringing
    back states, `waiting` is the rest of the wall time: start-up, decisions, bookkeeping; only the workers' start where
    the wall time is unknown.
    """
    story = history(events)
    validation = story.last("validation")
    test = story.last("test")
    return {
        "train_steps": story.train_steps,
        "probe_steps": story.probe_steps,
        "seconds": _seconds(events, wall_seconds or _recorded_wall_seconds(story)),
        "train_loss": _train_loss(story),
        "validation_loss": validation.metrics["loss"] if validation else None,
        "validation": validation.metrics if validation else {},
        "test": test.metrics if test else {},
        "scores": story.scores[-1].metrics if story.scores else {},
        "lr_by_step": lr_by_step(story),
    }


def lr_by_step(story: History) -> list[tuple[int, float]]:
    """(first step, rate) for each stretch of real steps at one rate."""
    stretches: list[tuple[int, float]] = []
    for step, rate in _rates(story):
        if not stretches or stretches[-1][1] != rate:
            stretches.append((step, rate))
    return stretches


def _rates(story: History) -> Iterator[tuple[int, float]]:
    for segment in story.segments:
        if segment.kind == "train":
            yield from enumerate(segment.rates, start=segment.first_step)


def _train_loss(story: History) -> float | None:
    losses = [loss for segment in story.segments if segment.kind == "train" for loss in segment.losses]
    return fmean(losses[-_LAST_STEPS:]) if losses else None


def _seconds(events: Sequence[Event], wall_seconds: float | None) -> dict[str, float]:
    spent = dict.fromkeys(ACTIVITIES, 0.0)
    starting = 0.0
    taken_up: dict[int, float] = {}  # by stage: a resumed run may say it again
    for event in events:
        match event:
            case ProbeRan():
                spent["search"] += event.train_seconds + event.validation_seconds
                spent["restoring"] += event.restore_seconds
            case StepsTrained():
                spent["training"] += event.seconds
            case Validated() | Scored():
                spent["validation"] += event.seconds
            case SnapshotSaved():
                spent["restoring"] += event.seconds
            case ArmTakenUp():
                taken_up[event.stage] = event.seconds
            case JobReady():
                starting += event.seconds
    spent["search"] -= sum(taken_up.values())
    spent["training"] += sum(taken_up.values())
    spent["waiting"] = starting if wall_seconds is None else max(0.0, wall_seconds - math.fsum(spent.values()))
    return spent


def _recorded_wall_seconds(story: History) -> float | None:
    wall = story.ended.result.get("wall_seconds") if story.ended else None
    return float(wall) if isinstance(wall, int | float) else None
