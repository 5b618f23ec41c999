"""Carrying out what a learning-rate policy asks for, on a gang of workers, and saying what happened.

How many steps go into one call is decided here: enough that calling costs nothing, few enough that a person sees
progress. It never changes the outcome.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Protocol

from orchestrator.copies import Copies
from orchestrator.events import Measured, ProbeRan, Scored, StepsTrained, Validated
from orchestrator.learning_rate.policy import Action, Outcome, Series, Train, Trained
from orchestrator.probing import Emit, Probing
from orchestrator.trial import Rewindable

SECONDS_A_CALL = 1.0
_HUGE = 1e3  # times the first loss: no training comes back from there


class TrainingDiverged(Exception):  # noqa: N818
    """The loss of a real step was not finite, or huge."""

    def __init__(self, stage: int, first_step: int, step: int, loss: float, rate: float) -> None:
        super().__init__(
            f"the training loss is {loss:.3g} at step {step} with rate {rate:.3g}; "
            "try a smaller rate, clip=1.0, or float32"
        )
        self.stage, self.first_step, self.step, self.loss = stage, first_step, step, loss


@dataclass(frozen=True)
class Progress:
    """How far the training that a policy asked for has come. `factor`: of its scheduled rates."""

    first_step: int
    factor: float = 1.0
    losses: list[float] = field(default_factory=list)
    validation: list[tuple[int, float]] = field(default_factory=list)


class Trainable(Rewindable, Protocol):
    """What is needed of a job; `orchestrator.cluster.job.Job` is one."""

    def evaluate(self) -> tuple[dict[str, float], list[str]]:
        """The task's own scores and samples."""

    def measurements(self) -> dict[str, float]:
        """The task's numbers about the real steps since the last call."""


@dataclass
class Execution:
    """One run's progress on a job: its real steps so far. Probes are shared with `replicas`, copies of the job.

    paused: told the real step and how far training has come between calls; one begins at each `pause_every` steps.
    factor_at: what the scheduled rates of a stage are multiplied by in a training that begins at a real step.
    begun: the training that an earlier gang or process had begun, if the present state lies within it.
    """

    job: Trainable
    emit: Emit
    step: int = 0
    replicas: Sequence[Rewindable] = ()
    paused: Callable[[int, Progress], None] = lambda step, progress: None
    pause_every: int | None = None
    factor_at: Callable[[int, int], float] = lambda stage, step: 1.0
    begun: Progress | None = None
    _probing: Probing = field(init=False)
    _seconds_a_step: float = SECONDS_A_CALL / 4

    def __post_init__(self) -> None:
        self._probing = Probing(Copies(self.job, self.replicas), self.emit)

    def remember(self, probes: Iterable[ProbeRan]) -> None:
        """Do not repeat the probes that an earlier process ran from the present step."""
        self._probing.remembered.extend(ran for ran in probes if ran.first_step == self.step)

    def carry_out(self, action: Action) -> Outcome:
        """Do what the policy asked for."""
        return self._train(action) if isinstance(action, Train) else self._probing.carry_out(action, self.step)

    def score(self) -> None:
        """The task's own evaluation of the present state."""
        begin = monotonic()
        metrics, samples = self.job.evaluate()
        if metrics or samples:
            self.emit(Scored(self.step, metrics, samples, monotonic() - begin))

    def validate(self, split: str = "validation") -> float:
        """Score a split and return its loss."""
        begin = monotonic()
        metrics = self.job.validate(split)
        self.emit(Validated(self.step, split, metrics, monotonic() - begin))
        return metrics["loss"]

    def _train(self, action: Train) -> Trained:
        progress = self._progress_of(action)
        end = action.first_step + action.steps
        while self.step < end:
            due = self._next_validation(action)
            progress.losses.extend(self._train_call(action, progress, due))
            if self.step == due:
                self._measure()
                progress.validation.append((self.step - action.first_step, self.validate()))
            if self.step < end:
                self.paused(self.step, progress)
        return Trained(Series(tuple(progress.losses), tuple(progress.validation)))

    def _progress_of(self, action: Train) -> Progress:
        begun, self.begun = self.begun, None
        if begun is not None:
            return begun
        if action.take_up is not None:
            self.step += self._probing.take_up(action.stage, action.take_up, self.step)
        return Progress(action.first_step, self.factor_at(action.stage, action.first_step))

    def _measure(self) -> None:
        numbers = self.job.measurements()
        if numbers:
            self.emit(Measured(self.step, numbers))

    def _next_validation(self, action: Train) -> int:
        end, every = action.first_step + action.steps, action.validate_every
        return min(end, action.first_step + ((self.step - action.first_step) // every + 1) * every) if every else end

    def _train_call(self, action: Train, progress: Progress, due: int) -> list[float]:
        pause = self._next_pause(due)
        steps = min(pause - self.step, self._steps_a_call())
        rates = [progress.factor * action.schedule.rate(step) for step in range(self.step, self.step + steps)]
        begin = monotonic()
        losses = self.job.train(rates, action.settings, more=self.step + steps < pause)
        seconds = monotonic() - begin
        self._seconds_a_step = seconds / steps
        self.emit(StepsTrained(action.stage, self.step, rates, losses, seconds))
        limit = _HUGE * (abs((progress.losses or losses)[0]) + 1)
        for step, (rate, loss) in enumerate(zip(rates, losses, strict=True), start=self.step):
            if not abs(loss) <= limit:
                raise TrainingDiverged(action.stage, action.first_step, step, loss, rate)
        self.step += steps
        return losses

    def _next_pause(self, due: int) -> int:
        """The step at which the whole state is wanted next, to score it or to write it down."""
        every = self.pause_every
        return min(due, (self.step // every + 1) * every) if every else due

    def _steps_a_call(self) -> int:
        return max(1, round(SECONDS_A_CALL / max(self._seconds_a_step, 1e-6)))
