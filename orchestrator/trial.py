"""One candidate of a probe on one copy of the job: from its start through its steps and validations, and back again."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any, Protocol

from orchestrator.events import ProbeRan
from orchestrator.learning_rate.dimensions import Settings
from orchestrator.learning_rate.policy import Probe
from orchestrator.learning_rate.schedules import Schedule

CALL_STEPS = 16  # fixed, so that a diverging probe ends at the same step whatever the machine's speed
START = "stage"  # the name of the state that probes begin with


class Rewindable(Protocol):
    """What is needed of a job; `orchestrator.cluster.job.Job` is one."""

    def train(self, rates: list[float], settings: Settings, *, more: bool = False) -> list[float]:
        """One optimizer step a rate; the mean loss over ranks of each. `settings` hold for these steps alone.

        more: the next call trains on in the same way.
        """

    def validate(self, split: str) -> dict[str, float]:
        """Mean metrics over a split, at least `loss`."""

    def keep(self, name: str) -> None:
        """Keep the complete state in the workers' memory."""

    def rewind(self, name: str) -> None:
        """Return to a kept state."""

    def forget(self, name: str) -> None:
        """Give the memory of a kept state back."""

    def kept(self, name: str) -> Any:
        """A kept state for `take` of another copy of the job. Asked for only where there are copies."""

    def take(self, name: str, state: Any) -> None:
        """Keep what another copy's `kept` gave."""

    def close(self) -> None:
        """End whatever is under way."""


@dataclass(frozen=True)
class Trial:
    """A candidate, tried from the real step `step`.

    brought: states of other copies to take first, by name. way: the probes that led to the end that the arm goes on
    from, where nobody keeps it. preparing: seconds spent beforehand.
    """

    action: Probe
    step: int
    arm: str | None
    candidate: Schedule
    settings: Settings
    brought: Mapping[str, Any]
    way: tuple[ProbeRan, ...] = ()
    preparing: float = 0.0


def carried_out(trial: Trial, job: Rewindable) -> ProbeRan:
    """Try the candidate; the job stands at the probes' start before, if it has that, and after."""
    begin, action = monotonic(), trial.action
    _go_to_beginning(trial, job)
    restore_seconds = trial.preparing + monotonic() - begin
    rates: list[float] = []
    losses: list[float] = []
    validation: list[tuple[int, float]] = []
    train_seconds = validation_seconds = 0.0
    while len(rates) < action.steps and not _hopeless(losses, action.stop_above):
        steps = min(_until_due(len(rates), action), CALL_STEPS)
        call_rates = [trial.candidate.rate(action.taken + len(rates) + each) for each in range(steps)]
        begin = monotonic()
        losses += job.train(call_rates, trial.settings)
        rates += call_rates
        train_seconds += monotonic() - begin
        if action.validate_every and (len(rates) % action.validate_every == 0 or len(rates) == action.steps):
            begin = monotonic()
            validation.append((len(rates), job.validate("validation")["loss"]))
            validation_seconds += monotonic() - begin
    begin = monotonic()
    if trial.arm is not None:
        job.keep(end_of(trial.arm))
    job.rewind(START)
    restore_seconds += monotonic() - begin
    return ProbeRan(
        action.stage, action.purpose, trial.step, rates, losses, validation,
        train_seconds, validation_seconds, restore_seconds, trial.arm, action.taken, dict(trial.settings),
    )  # fmt: skip


def retrace(way: Iterable[ProbeRan], job: Rewindable) -> None:
    """Take an arm's steps once more, in the same calls."""
    for ran in way:
        for begin in range(0, len(ran.rates), CALL_STEPS):
            job.train(ran.rates[begin : begin + CALL_STEPS], ran.settings)


def end_of(arm: str) -> str:
    """The name of the state that an arm's last probe ended with."""
    return f"arm {arm}"


def _go_to_beginning(trial: Trial, job: Rewindable) -> None:
    for name, state in trial.brought.items():
        job.take(name, state)
    if START in trial.brought:
        job.rewind(START)
    if trial.way:
        retrace(trial.way, job)
    elif trial.arm is not None and trial.action.taken:
        job.rewind(end_of(trial.arm))


def _until_due(done: int, action: Probe) -> int:
    """Steps until the probe's end or its next validation, whichever comes first."""
    left = action.steps - done
    return min(left, action.validate_every - done % action.validate_every) if action.validate_every else left


def _hopeless(losses: Iterable[float], stop_above: float | None) -> bool:
    return any(not math.isfinite(loss) or (stop_above is not None and loss > stop_above) for loss in losses)
