"""Follows a run's events and says what each metric reads after each of them."""

from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Any

from orchestrator.communication import OF_GRADIENTS
from orchestrator.events import (
    ArmTakenUp,
    CommunicationMeasured,
    Event,
    ForecastMade,
    ProbeRan,
    Recovered,
    RunResumed,
    RunStarted,
    SnapshotSaved,
    StepsTrained,
    Validated,
)
from orchestrator.monitoring import panels
from orchestrator.monitoring.panels import Metric
from orchestrator.words import part_of

Reading = tuple[Metric, dict[str, str], float]
"""A metric, the tags of the series, and its value."""

_LAST_LOSSES = 10  # one batch's loss is noise


class Readings:
    """Takes events in order. Where a run went back to a snapshot, the steps after it no longer count as useful."""

    def __init__(self) -> None:
        self._samples_a_step = 0
        self._total_steps = 0
        self._useful: list[tuple[int, int, float]] = []  # first step, steps and seconds of every call that counts
        self._probe_steps = 0
        self._recoveries = 0

    def note(self, event: Event, at: float) -> list[Reading]:
        """What has changed with `event`, which came when the run had been worked on for `at` seconds."""
        return [*self._changed(event), *self._shares(event, at)]

    def _changed(self, event: Event) -> Iterator[Reading]:
        match event:
            case RunStarted():
                self._begin(event)
                yield panels.RECOVERIES, {}, 0.0
            case RunResumed() | Recovered():
                self._recoveries += 1
                self._useful = [call for call in self._useful if call[0] < event.step]
                yield panels.RECOVERIES, {}, float(self._recoveries)
            case ProbeRan():
                self._probe_steps += len(event.rates)
                yield panels.STAGE, {}, float(event.stage)
                if event.rates and event.train_losses:
                    yield panels.PROBE_RATE, {}, event.rates[-1]
                    yield panels.PROBE_LOSS, {}, fmean(event.train_losses[-_LAST_LOSSES:])
            case ArmTakenUp():
                self._probe_steps -= len(event.rates)
                self._useful.append((event.first_step, len(event.rates), event.seconds))
                yield from self._steps(event.first_step, event.rates, event.losses, event.seconds)
            case ForecastMade() if not event.forecast.diverged:
                yield panels.FORECAST_LOSS, {}, event.forecast.loss
            case StepsTrained():
                self._useful.append((event.first_step, len(event.rates), event.seconds))
                yield panels.STAGE, {}, float(event.stage)
                yield from self._steps(event.first_step, event.rates, event.losses, event.seconds)
            case Validated() if event.split == "validation":
                yield panels.VALIDATION_LOSS, {}, event.metrics["loss"]
            case SnapshotSaved():
                yield panels.SNAPSHOT_SECONDS, {}, event.seconds
            case CommunicationMeasured():
                yield from of_communication(event.rows)

    def _begin(self, event: RunStarted) -> None:
        config = event.config
        workers = _count(part_of(config, "cluster"), "workers", 1)
        self._samples_a_step = _count(config, "batch_size", 0) * _count(config, "accumulate", 1) * workers
        self._total_steps = _count(event.cost, "train_steps", 0)

    def _steps(self, first_step: int, rates: list[float], losses: list[float], seconds: float) -> Iterator[Reading]:
        done = first_step + len(rates)
        yield panels.STEP, {}, float(done)
        yield panels.STEPS_LEFT, {}, float(max(0, self._total_steps - done))
        if rates and losses:
            yield panels.LEARNING_RATE, {}, rates[-1]
            yield panels.TRAIN_LOSS, {}, fmean(losses[-_LAST_LOSSES:])
        if rates and seconds:
            yield panels.STEPS_A_SECOND, {}, len(rates) / seconds
            yield panels.SAMPLES_A_SECOND, {}, len(rates) / seconds * self._samples_a_step

    def _shares(self, event: Event, at: float) -> list[Reading]:
        if not isinstance(event, StepsTrained | ProbeRan | RunResumed | Recovered | ArmTakenUp):
            return []
        steps = sum(count for _, count, _ in self._useful)
        readings: list[Reading] = []
        if at > 0:
            readings.append((panels.GOODPUT, {}, min(1.0, sum(seconds for _, _, seconds in self._useful) / at)))
        if steps + self._probe_steps:
            readings.append((panels.PROBE_SHARE, {}, self._probe_steps / (steps + self._probe_steps)))
        return readings


def _count(values: Mapping[str, Any], name: str, otherwise: int) -> int:
    """A number as it was recorded; `otherwise` where the record holds none, or something else."""
    value = values.get(name)
    return value if isinstance(value, int) else otherwise


def of_communication(rows: Mapping[str, Mapping[str, float]]) -> Iterator[Reading]:
    """What a planned group has moved, by collective: rows as in CommunicationMeasured."""
    for collective, row in rows.items():
        yield panels.COLLECTIVE_SECONDS, {"collective": collective}, row["measured_seconds"]
        yield panels.COLLECTIVE_BYTES, {"collective": collective, "way": "plan"}, row["planned_bytes"]
        yield panels.COLLECTIVE_BYTES, {"collective": collective, "way": "other"}, row["other_bytes"]
    gradients = rows.get(OF_GRADIENTS)
    if gradients and gradients["measured_seconds"]:
        yield panels.PLAN_RATIO, {}, gradients["predicted_seconds"] / gradients["measured_seconds"]
