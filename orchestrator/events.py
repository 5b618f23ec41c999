"""What can happen in a run, as small dataclasses: the only thing recorders see.

The driver emits each event once, in order. `event_json` and `event_from_json` carry them through the journal.
Steps count real optimizer steps from the run's start; seconds come from a monotonic clock.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from orchestrator.learning_rate.policy import Choice, Forecast, RangeFound

Json = dict[str, Any]


@dataclass(frozen=True)
class RunStarted:
    """First event of a run. `config` is the resolved configuration; `cost` has stages, train_steps, probe_steps.

    past: the folder of an earlier run of the same work, around whose rate, config's lr.near, this one searches.
    """

    run_id: str
    folder: str
    config: Json
    cost: Json
    started_at: float  # seconds since the epoch, for people; never used for durations
    past: str | None = None


@dataclass(frozen=True)
class RunResumed:
    """A later process took the run up again at `step`."""

    step: int
    snapshot: str | None


@dataclass(frozen=True)
class Recovered:
    """Workers had failed, and new ones stand at `step`, where the newest good snapshot was taken.

    what: died, silent, raised or diverged. rank, reason, log: of the failure; no rank where all of them agreed.
    lost_steps: real steps that are taken again. seconds: from the first sign of the failure on.
    """

    step: int
    snapshot: str | None
    what: str
    rank: int | None
    reason: str
    lost_steps: int
    seconds: float
    log: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class RateLowered:
    """Training of `stage` diverged at `step`: its scheduled rates are multiplied by `factor` from `first_step` on."""

    stage: int
    first_step: int
    factor: float
    step: int
    loss: float


@dataclass(frozen=True)
class JobReady:
    """The gang of workers is up. `dashboard`: the address of Ray's."""

    world_size: int
    device: str
    parameters: int
    seconds: float
    dashboard: str | None = None


@dataclass(frozen=True)
class PlanChosen:
    """How gradients travel. `source` is cache, solved or none; algbw an exact fraction in GB/s or None.

    network: the topology's name. optimal: whether no plan is faster. seconds: of looking up or solving. picture: SVG.
    """

    source: str
    key: str | None = None
    collective: str | None = None
    algbw: str | None = None
    network: str | None = None
    optimal: bool | None = None
    seconds: float = 0.0
    picture: str | None = None


@dataclass(frozen=True)
class CommunicationMeasured:
    """What rank 0's group has moved since the workers started, by collective.

    rule: from how many bytes on each collective goes by plan, in words. rows: collective → counters, such as
    planned_calls, planned_bytes, planned_seconds, predicted_seconds, other_calls, other_bytes.
    """

    step: int
    rule: str
    rows: dict[str, dict[str, float]]


@dataclass(frozen=True)
class OverlapPlanned:
    """How steps overlap, found by trial steps before training; fields as in `trainers.overlap.training.decision`.

    layout: what is followed, for workers that come later. seconds: a step's, by way; chosen: one of these ways.
    timelines: rows of (stream, operation, begin, end) by title.
    """

    layout: Json
    machine: str
    seconds: dict[str, list[float]]
    chosen: str
    predicted_seconds: float | None
    predicted_serial_seconds: float
    timelines: dict[str, list[list[Any]]]
    rejected: int = 0


@dataclass(frozen=True)
class Decided:
    """Something that makes a run faster was decided before its first step, by trial steps that were undone.

    what: communication, batch, overlap or rate. chosen: configuration keys and their values from now on; none where all
    stays as given. evidence: numbers by name. seconds: that deciding took. gain: how many times as fast as before the
    run is, as measured or as follows from what was measured; 1 where nothing changes.
    """

    what: str
    chosen: dict[str, Any]
    evidence: dict[str, float]
    seconds: float
    gain: float
    reason: str


@dataclass(frozen=True)
class ProbeRan:
    """One candidate was tried and the state came back. Losses are means over ranks; validation is (steps, loss)."""

    stage: int
    purpose: str
    first_step: int  # the real step from which it was tried
    rates: list[float]  # one a step taken
    train_losses: list[float]
    validation: list[tuple[int, float]]
    train_seconds: float
    validation_seconds: float
    restore_seconds: float
    arm: str | None = None  # whose end was kept
    taken: int = 0  # steps that the arm had taken before, from `first_step`
    settings: dict[str, float] = field(default_factory=dict)  # factors of what is configured


@dataclass(frozen=True)
class ArmTakenUp:
    """A stage goes on from the end of one of its arms: the probes of that arm are real steps from now on."""

    stage: int
    arm: str
    first_step: int  # the real step from which the arm was tried
    rates: list[float]
    losses: list[float]
    seconds: float  # that its steps took as probes


@dataclass(frozen=True)
class ForecastMade:
    """A policy's reading of one probe."""

    forecast: Forecast


@dataclass(frozen=True)
class RateChosen:
    """A stage's decision."""

    choice: Choice


@dataclass(frozen=True)
class RangeChosen:
    """The search interval."""

    found: RangeFound


@dataclass(frozen=True)
class StepsTrained:
    """A run of real steps, reported about once a second."""

    stage: int
    first_step: int
    rates: list[float]
    losses: list[float]
    seconds: float


@dataclass(frozen=True)
class Validated:
    """A split was scored after `step` real steps. `metrics` has at least `loss`."""

    step: int
    split: str
    metrics: dict[str, float]
    seconds: float


@dataclass(frozen=True)
class Measured:
    """What the task counted and timed in the steps up to `step` since the last time, under names of its own."""

    step: int
    metrics: dict[str, float]


@dataclass(frozen=True)
class Scored:
    """A task's own evaluation (perplexity, generation …) after `step` real steps."""

    step: int
    metrics: dict[str, float]
    samples: list[str]
    seconds: float


@dataclass(frozen=True)
class SnapshotSaved:
    """A complete state is on disk. Resuming starts from the newest one that verifies."""

    step: int
    path: str  # relative to the run folder
    seconds: float  # for which training stood still


@dataclass(frozen=True)
class SnapshotFailed:
    """The state at `step` could not be written; older snapshots are as they were, and training goes on."""

    step: int
    reason: str


@dataclass(frozen=True)
class Warned:
    """Something a person should know, in one sentence; the run goes on."""

    message: str


@dataclass(frozen=True)
class RunEnded:
    """Last event. `state` is FINISHED, FAILED or KILLED; `result` is what result.json will hold."""

    state: str
    reason: str | None
    result: Json


Event = (
    RunStarted
    | RunResumed
    | Recovered
    | RateLowered
    | JobReady
    | PlanChosen
    | CommunicationMeasured
    | OverlapPlanned
    | Decided
    | ProbeRan
    | ArmTakenUp
    | ForecastMade
    | RateChosen
    | RangeChosen
    | StepsTrained
    | Validated
    | Measured
    | Scored
    | SnapshotSaved
    | SnapshotFailed
    | Warned
    | RunEnded
)

_BY_NAME: dict[str, type[Any]] = {kind.__name__: kind for kind in Event.__args__}


def _choice(values: Json) -> Choice:
    return Choice(**{**values, "surrogate": tuple(tuple(row) for row in values["surrogate"])})


# Fields that JSON cannot hold as they are, and how each comes back.
_READERS: dict[str, Callable[[Any], Any]] = {
    "forecast": lambda values: Forecast(**values),
    "choice": _choice,
    "found": lambda values: RangeFound(**values),
    "validation": lambda rows: [tuple(row) for row in rows],
}


class Recorder(Protocol):
    """Listens to a run. Recorders never see each other."""

    def record(self, event: Event) -> None:
        """Take note of one event."""

    def close(self) -> None:
        """Write out what is left; called once, whatever happened."""


def event_json(event: Event) -> Json:
    """The event as plain JSON values, with its name under "event"."""
    return {"event": type(event).__name__, **dataclasses.asdict(event)}


def event_from_json(values: Json) -> Event:
    """The inverse of `event_json`. Only the classes of this file can come out of it."""
    fields = dict(values)
    kind = _BY_NAME[fields.pop("event")]
    for name in fields.keys() & _READERS.keys():
        fields[name] = _READERS[name](fields[name])
    event: Event = kind(**fields)
    return event
