"""What a run's events add up to: its real steps, its probes and its stages, as if it had never been interrupted.

A process that resumes goes back to a snapshot, so steps and probes after that snapshot may stand twice in the journal.
Here each counts once, the later one. Report, figures, comparison and summary all start from this.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from orchestrator.events import (
    ArmTakenUp,
    CommunicationMeasured,
    Decided,
    Event,
    ForecastMade,
    JobReady,
    Measured,
    OverlapPlanned,
    PlanChosen,
    ProbeRan,
    RangeChosen,
    RateChosen,
    RateLowered,
    Recovered,
    RunEnded,
    RunResumed,
    RunStarted,
    Scored,
    SnapshotFailed,
    SnapshotSaved,
    StepsTrained,
    Validated,
    Warned,
)
from orchestrator.learning_rate.dimensions import Settings
from orchestrator.learning_rate.policy import Choice, Forecast
from orchestrator.words import lowered_text


@dataclass(frozen=True)
class Segment:
    """Steps taken one after another. `start` counts all steps before it, probes included; `first_step` real ones.

    A probe whose arm was taken up is training.
    """

    kind: str  # "train" or "probe"
    stage: int
    start: int
    first_step: int
    rates: list[float]
    losses: list[float]
    validation: list[tuple[int, float]]
    arm: str | None = None

    @property
    def end(self) -> int:
        """All steps taken when it was over."""
        return self.start + len(self.rates)


@dataclass
class Stage:
    """One stage's search and decision. `first_step` is the real step at which it begins."""

    number: int
    first_step: int
    probes: list[ProbeRan] = field(default_factory=list)
    forecasts: list[Forecast] = field(default_factory=list)
    choice: Choice | None = None


@dataclass
class History:
    """A run, put in order."""

    started: RunStarted | None = None
    job: JobReady | None = None
    plan: PlanChosen | None = None
    communication: CommunicationMeasured | None = None
    overlap: OverlapPlanned | None = None
    decided: list[Decided] = field(default_factory=list)
    found: RangeChosen | None = None
    ended: RunEnded | None = None
    segments: list[Segment] = field(default_factory=list)
    stages: dict[int, Stage] = field(default_factory=dict)
    validations: list[Validated] = field(default_factory=list)
    scores: list[Scored] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    resumed: int = 0
    recoveries: list[Recovered] = field(default_factory=list)

    @property
    def train_steps(self) -> int:
        """Real optimizer steps."""
        return sum(len(each.rates) for each in self.segments if each.kind == "train")

    @property
    def probe_steps(self) -> int:
        """Steps spent on the search and taken back."""
        return sum(len(each.rates) for each in self.segments if each.kind == "probe")

    @property
    def settings(self) -> Settings:
        """What the last stage uses besides its rate, as factors of the configuration."""
        choices = [stage.choice for stage in self.stages.values() if stage.choice is not None]
        return choices[-1].settings if choices else {}

    def total_steps(self, step: int) -> int:
        """All steps, probes included, that had been taken when real step number `step` was about to run."""
        position = 0
        for segment in self.segments:
            if segment.kind == "train" and segment.first_step < step:
                position = segment.start + min(step - segment.first_step, len(segment.rates))
        return position

    def last(self, split: str) -> Validated | None:
        """The last validation on a split."""
        return next((each for each in reversed(self.validations) if each.split == split), None)


def history(events: Sequence[Event]) -> History:
    """Put a run's events in order; an unfinished run gives what there is so far."""
    story = History(resumed=sum(isinstance(event, RunResumed) for event in events))
    story.recoveries = [event for event in events if isinstance(event, Recovered)]
    for event in undisturbed(events):
        append(story, event)
    if events and isinstance(events[-1], RunEnded):
        story.ended = events[-1]
    return story


def undisturbed(events: Sequence[Event]) -> list[Event]:
    """The events without those that were done again after a resume."""
    kept: list[Event] = []
    redoable: list[Event] = []
    for event in events:
        if isinstance(event, RunResumed | Recovered):
            kept, redoable = _gone_back(kept, event.step)
            continue
        earlier = next((old for old in redoable if _identity(old) == _identity(event) is not None), None)
        if earlier is not None:
            kept, redoable = _without(kept, earlier), _without(redoable, earlier)
        kept.append(event)
    return kept


def _without(events: list[Event], gone: Event) -> list[Event]:
    return [event for event in events if event is not gone]


def _gone_back(kept: list[Event], step: int) -> tuple[list[Event], list[Event]]:
    """What still counts after a return to the snapshot of `step`, and what of that may yet be done again.

    A search made after the snapshot counts, for a policy may take it up from the journal; steps trained do not. One
    that was written beside the training is told of when later steps have been taken already.
    """
    saved = [at for at, event in enumerate(kept, start=1) if isinstance(event, SnapshotSaved) and event.step == step]
    begin = saved[-1] if saved else 0
    before = [event for event in kept[:begin] if not _is_later(event, step)]
    behind = [event for event in kept[begin:] if not _is_later(event, step)]
    search = list(takewhile(lambda event: not isinstance(event, ArmTakenUp | StepsTrained), behind))
    said = [event for event in kept[begin:] if isinstance(event, Warned | RateLowered | SnapshotFailed)]
    return before + search + [event for event in said if event not in search], search


def _is_later(event: Event, step: int) -> bool:
    """Whether it is of the training behind that step."""
    match event:
        case StepsTrained():
            return event.first_step >= step
        case Validated() | Measured() | Scored():
            return event.step > step
    return False


def _identity(event: Event) -> Hashable:
    """Equal for an event and the same thing done again; None for what cannot be done again."""
    match event:
        case ProbeRan():
            return ("probe", event.stage, event.first_step, event.arm, event.taken, tuple(event.rates))
        case ForecastMade():
            return ("forecast", event.forecast.stage, event.forecast.rate, *event.forecast.settings.items())
        case RateChosen():
            return ("choice", event.choice.stage)
        case RangeChosen():
            return "range"
        case Validated():
            return ("validated", event.step, event.split)
        case Scored():
            return ("scored", event.step)
    return None


def append(story: History, event: Event) -> None:
    """Take the next event into account, which must undo none before it."""
    match event:
        case RunStarted():
            story.started = event
        case JobReady():
            story.job = event
        case PlanChosen():
            story.plan = event
        case CommunicationMeasured():
            story.communication = event
        case OverlapPlanned():
            story.overlap = event
        case Decided():
            story.decided.append(event)
        case RangeChosen():
            story.found = event
        case ProbeRan():
            _stage(story, event.stage, event.first_step).probes.append(event)
            _add_steps(story, _probe_segment(event))
        case ArmTakenUp():
            story.segments = [_taken_up(segment, event) for segment in story.segments]
        case ForecastMade():
            _stage(story, event.forecast.stage, _next_step(story)).forecasts.append(event.forecast)
        case RateChosen():
            _stage(story, event.choice.stage, _next_step(story)).choice = event.choice
        case StepsTrained():
            _stage(story, event.stage, event.first_step)
            _add_steps(story, Segment("train", event.stage, 0, event.first_step, [*event.rates], [*event.losses], []))
        case Validated():
            story.validations.append(event)
        case Scored():
            story.scores.append(event)
        case Warned():
            story.warnings.append(event.message)
        case RateLowered():
            story.warnings.append(lowered_text(event))
        case SnapshotFailed():
            story.warnings.append(f"no snapshot of step {event.step}: {event.reason}")


def _stage(story: History, number: int, first_step: int) -> Stage:
    return story.stages.setdefault(number, Stage(number, first_step))


def _next_step(story: History) -> int:
    return max((each.first_step + len(each.rates) for each in story.segments if each.kind == "train"), default=0)


def _probe_segment(ran: ProbeRan) -> Segment:
    losses, first_step = list(ran.train_losses), ran.first_step + ran.taken
    return Segment("probe", ran.stage, 0, first_step, list(ran.rates), losses, list(ran.validation), ran.arm)


def _taken_up(segment: Segment, event: ArmTakenUp) -> Segment:
    own = (segment.kind, segment.stage, segment.arm) == ("probe", event.stage, event.arm)
    return replace(segment, kind="train") if own else segment


def _add_steps(story: History, segment: Segment) -> None:
    """Chunks of one stage's training are one segment; every probe is its own."""
    last = story.segments[-1] if story.segments else None
    if last is not None and (last.kind, last.stage, segment.kind) == ("train", segment.stage, "train"):
        last.rates.extend(segment.rates)
        last.losses.extend(segment.losses)
        return
    story.segments.append(replace(segment, start=last.end if last is not None else 0))
