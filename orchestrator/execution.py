"""Carrying out what a learning-rate policy asks for, on a gang of workers, and saying what happened.

How many steps go into one call is decided here: enough that calling costs nothing, few enough that a person sees
progress. It never changes the outcome.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Protocol

from orchestrator.events import Event, ProbeRan, Scored, StepsTrained, Validated
from orchestrator.learning_rate.policy import Action, Outcome, Probe, Probed, Series, Train, Trained
from orchestrator.learning_rate.schedules import Schedule

PROBE_CALL_STEPS = 16  # fixed, so that a diverging probe ends at the same step whatever the machine's speed
SECONDS_A_CALL = 1.0

Emit = Callable[[Event], None]


class TrainingDiverged(Exception):  # noqa: N818
    """The loss of a real step was not finite."""


class Trainable(Protocol):
    """What is needed of a job; `orchestrator.cluster.job.Job` is one."""

    def train(self, rates: Sequence[float]) -> list[float]:
        """One optimizer step a rate; the mean loss over ranks of each."""

    def validate(self, split: str) -> dict[str, float]:
        """Mean metrics over a split, at least `loss`."""

    def evaluate(self) -> tuple[dict[str, float], list[str]]:
        """The task's own scores and samples."""

    def keep(self, name: str) -> None:
        """Keep the complete state in the workers' memory."""

    def rewind(self, name: str) -> None:
        """Return to a kept state."""


@dataclass
class Execution:
    """One run's progress on a job. `remembered`: probes of an earlier process, which are not repeated."""

    job: Trainable
    emit: Emit
    step: int = 0
    remembered: deque[ProbeRan] = field(default_factory=deque)
    _seconds_a_step: float = SECONDS_A_CALL / 4
    _kept_step: int | None = None

    def carry_out(self, action: Action) -> Outcome:
        """Do what the policy asked for."""
        return self._train(action) if isinstance(action, Train) else self._probe(action)

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
        losses: list[float] = []
        validation: list[tuple[int, float]] = []
        end = action.first_step + action.steps
        while self.step < end:
            stop = self._next_validation(action)
            while self.step < stop:
                losses += self._train_call(action, min(stop - self.step, self._call_steps()))
            validation.append((self.step - action.first_step, self.validate()))
        return Trained(Series(tuple(losses), tuple(validation)))

    def _next_validation(self, action: Train) -> int:
        end, every = action.first_step + action.steps, action.validate_every
        return min(end, action.first_step + ((self.step - action.first_step) // every + 1) * every) if every else end

    def _train_call(self, action: Train, steps: int) -> list[float]:
        rates = [action.schedule.rate(step) for step in range(self.step, self.step + steps)]
        begin = monotonic()
        losses = self.job.train(rates)
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

    def _probe(self, action: Probe) -> Probed:
        return Probed(tuple(self._probe_one(action, candidate) for candidate in action.candidates))

    def _probe_one(self, action: Probe, candidate: Schedule) -> Series:
        ran = self._recall(action, candidate) or self._try(action, candidate)
        return Series(tuple(ran.train_losses), tuple((int(step), loss) for step, loss in ran.validation))

    def _recall(self, action: Probe, candidate: Schedule) -> ProbeRan | None:
        """The same probe, if an earlier process has run it from the same step."""
        if self.remembered:
            ran = self.remembered[0]
            rates = [candidate.rate(step) for step in range(len(ran.rates))]
            if (ran.stage, ran.purpose, ran.first_step, ran.rates) == (action.stage, action.purpose, self.step, rates):
                return self.remembered.popleft()
            self.remembered.clear()
        return None

    def _try(self, action: Probe, candidate: Schedule) -> ProbeRan:
        keep_seconds = self._keep()
        rates: list[float] = []
        losses: list[float] = []
        validation: list[tuple[int, float]] = []
        train_seconds = validation_seconds = 0.0
        while len(rates) < action.steps and not _hopeless(losses, action.stop_above):
            steps = min(_until_due(len(rates), action), PROBE_CALL_STEPS)
            call_rates = [candidate.rate(len(rates) + step) for step in range(steps)]
            begin = monotonic()
            losses += self.job.train(call_rates)
            rates += call_rates
            train_seconds += monotonic() - begin
            if action.validate_every and (len(rates) % action.validate_every == 0 or len(rates) == action.steps):
                begin = monotonic()
                validation.append((len(rates), self.job.validate("validation")["loss"]))
                validation_seconds += monotonic() - begin
        begin = monotonic()
        self.job.rewind("stage")
        restore_seconds = keep_seconds + monotonic() - begin
        ran = ProbeRan(
            action.stage, action.purpose, self.step, rates, losses, validation,
            train_seconds, validation_seconds, restore_seconds,
        )  # fmt: skip
        self.emit(ran)
        return ran

    def _keep(self) -> float:
        """Keep the state that probes start from, once a stage; returns the seconds it took."""
        if self._kept_step == self.step:
            return 0.0
        begin = monotonic()
        self.job.keep("stage")
        self._kept_step = self.step
        return monotonic() - begin


def _until_due(done: int, action: Probe) -> int:
    """Steps until the probe's end or its next validation, whichever comes first."""
    left = action.steps - done
    return min(left, action.validate_every - done % action.validate_every) if action.validate_every else left


def _hopeless(losses: Iterable[float], stop_above: float | None) -> bool:
    return any(not math.isfinite(loss) or (stop_above is not None and loss > stop_above) for loss in losses)
