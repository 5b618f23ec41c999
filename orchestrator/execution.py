"""Carrying out what a learning-rate policy asks for, on a gang of workers, and saying what happened.

How many steps go into one call is decided here: enough that calling costs nothing, few enough that a person sees
progress. It never changes the outcome.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Protocol

from orchestrator.copies import Copies
from orchestrator.events import Measured, ProbeRan, Scored, StepsTrained, Validated
from orchestrator.learning_rate.policy import Action, Outcome, Series, Train, Trained
from orchestrator.probing import Emit, Probing
from orchestrator.trial import Rewindable

SECONDS_A_CALL = 1.0


class TrainingDiverged(Exception):  # noqa: N818
    """The loss of a real step was not finite."""


class Trainable(Rewindable, Protocol):
    """What is needed of a job; `orchestrator.cluster.job.Job` is one."""

    def evaluate(self) -> tuple[dict[str, float], list[str]]:
        """The task's own scores and samples."""

    def measurements(self) -> dict[str, float]:
        """The task's numbers about the real steps since the last call."""


@dataclass
class Execution:
    """One run's progress on a job: its real steps so far. Probes are shared with `replicas`, copies of the job."""

    job: Trainable
    emit: Emit
    step: int = 0
    replicas: Sequence[Rewindable] = ()
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
        if action.take_up is not None:
            self.step += self._probing.take_up(action.stage, action.take_up, self.step)
        losses: list[float] = []
        validation: list[tuple[int, float]] = []
        end = action.first_step + action.steps
        while self.step < end:
            stop = self._next_validation(action)
            while self.step < stop:
                losses += self._train_call(action, min(stop - self.step, self._call_steps()))
            self._measure()
            validation.append((self.step - action.first_step, self.validate()))
        return Trained(Series(tuple(losses), tuple(validation)))

    def _measure(self) -> None:
        numbers = self.job.measurements()
        if numbers:
            self.emit(Measured(self.step, numbers))

    def _next_validation(self, action: Train) -> int:
        end, every = action.first_step + action.steps, action.validate_every
        return min(end, action.first_step + ((self.step - action.first_step) // every + 1) * every) if every else end

    def _train_call(self, action: Train, steps: int) -> list[float]:
        rates = [action.schedule.rate(step) for step in range(self.step, self.step + steps)]
        begin = monotonic()
        losses = self.job.train(rates, action.settings)
        seconds = monotonic() - begin
        self._seconds_a_step = seconds / steps
        self.emit(StepsTrained(action.stage, self.step, rates, losses, seconds))
        for step, (rate, loss) in enumerate(zip(rates, losses, strict=True), start=self.step):
            if not math.isfinite(loss):
                raise TrainingDiverged(
                    f"the training loss is {loss} at step {step} with rate {rate:.3g}; "
                    "try a smaller rate, clip=1.0, or float32"
                )
        self.step += steps
        return losses

    def _call_steps(self) -> int:
        return max(1, round(SECONDS_A_CALL / max(self._seconds_a_step, 1e-6)))
