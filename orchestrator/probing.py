"""Carrying out the probes of a learning-rate policy: from the stage's start or the kept end of an arm, and back again.

A run that was taken up again has its probes from the journal, but not their ends: an end that is asked for is then run
once more, which gives the same bits.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import monotonic
from typing import Protocol

from orchestrator.events import ArmTakenUp, Event, ProbeRan
from orchestrator.learning_rate.policy import Probe, Probed, Series
from orchestrator.learning_rate.schedules import Schedule

CALL_STEPS = 16  # fixed, so that a diverging probe ends at the same step whatever the machine's speed
START = "stage"  # the name of the state that probes begin with

Emit = Callable[[Event], None]


class Rewindable(Protocol):
    """What is needed of a job; `orchestrator.cluster.job.Job` is one."""

    def train(self, rates: list[float]) -> list[float]:
        """One optimizer step a rate; the mean loss over ranks of each."""

    def validate(self, split: str) -> dict[str, float]:
        """Mean metrics over a split, at least `loss`."""

    def keep(self, name: str) -> None:
        """Keep the complete state in the workers' memory."""

    def rewind(self, name: str) -> None:
        """Return to a kept state."""

    def forget(self, name: str) -> None:
        """Give the memory of a kept state back."""


@dataclass
class _Arm:
    """What led to an arm's end, and whether the workers keep that end."""

    probes: list[ProbeRan] = field(default_factory=list)
    kept: bool = False

    @property
    def rates(self) -> list[float]:
        return [rate for ran in self.probes for rate in ran.rates]

    @property
    def losses(self) -> list[float]:
        return [loss for ran in self.probes for loss in ran.train_losses]


@dataclass
class Probing:
    """The probes of one run. `remembered`: those of an earlier process, which are not repeated."""

    job: Rewindable
    emit: Emit
    remembered: deque[ProbeRan] = field(default_factory=deque)
    _arms: dict[str, _Arm] = field(default_factory=dict)
    _start: int | None = None  # the real step whose state is kept

    def carry_out(self, action: Probe, step: int) -> Probed:
        """Try every candidate; `step` is the real step reached, where the job stands before and after."""
        for name in self._arms.keys() - {*action.arms, *action.needed}:
            self._forget(name)
        names = action.arms or (None,) * len(action.candidates)
        tried = [self._probe(action, step, *pair) for pair in zip(names, action.candidates, strict=True)]
        return Probed(tuple(Series(tuple(ran.train_losses), tuple(ran.validation)) for ran in tried))

    def take_up(self, stage: int, name: str, step: int) -> int:
        """Let the job stand at the end of an arm, whose steps are real from now on; returns their number."""
        arm = self._arms[name]
        self._go_to(name, step)
        seconds = math.fsum(ran.train_seconds for ran in arm.probes)
        self.emit(ArmTakenUp(stage, name, step, arm.rates, arm.losses, seconds))
        for other in list(self._arms):
            self._forget(other)
        self.job.forget(START)
        self._start = None
        return len(arm.rates)

    def _probe(self, action: Probe, step: int, name: str | None, candidate: Schedule) -> ProbeRan:
        recalled = self._recall(action, step, name, candidate)
        ran = recalled or self._try(action, step, name, candidate)
        if name is not None:
            arm = self._arms[name] if action.taken else _Arm()
            self._arms[name] = _Arm([*arm.probes, ran], kept=recalled is None)
        return ran

    def _recall(self, action: Probe, step: int, name: str | None, candidate: Schedule) -> ProbeRan | None:
        """The same probe, if an earlier process has run it from the same step."""
        if self.remembered:
            ran = self.remembered[0]
            rates = [candidate.rate(action.taken + each) for each in range(len(ran.rates))]
            asked = (action.stage, action.purpose, step, name, action.taken, rates)
            if (ran.stage, ran.purpose, ran.first_step, ran.arm, ran.taken, ran.rates) == asked:
                return self.remembered.popleft()
            self.remembered.clear()
        return None

    def _try(self, action: Probe, step: int, name: str | None, candidate: Schedule) -> ProbeRan:
        begin = monotonic()
        self._keep_start(step)
        if name is not None and action.taken:
            self._go_to(name, step)
        restore_seconds = monotonic() - begin
        rates: list[float] = []
        losses: list[float] = []
        validation: list[tuple[int, float]] = []
        train_seconds = validation_seconds = 0.0
        while len(rates) < action.steps and not _hopeless(losses, action.stop_above):
            steps = min(_until_due(len(rates), action), CALL_STEPS)
            call_rates = [candidate.rate(action.taken + len(rates) + each) for each in range(steps)]
            begin = monotonic()
            losses += self.job.train(call_rates)
            rates += call_rates
            train_seconds += monotonic() - begin
            if action.validate_every and (len(rates) % action.validate_every == 0 or len(rates) == action.steps):
                begin = monotonic()
                validation.append((len(rates), self.job.validate("validation")["loss"]))
                validation_seconds += monotonic() - begin
        begin = monotonic()
        if name is not None:
            self.job.keep(_kept(name))
        self.job.rewind(START)
        restore_seconds += monotonic() - begin
        ran = ProbeRan(
            action.stage, action.purpose, step, rates, losses, validation,
            train_seconds, validation_seconds, restore_seconds, name, action.taken,
        )  # fmt: skip
        self.emit(ran)
        return ran

    def _keep_start(self, step: int) -> None:
        """Keep the state that probes start from, once a stage."""
        if self._start != step:
            self.job.keep(START)
            self._start = step

    def _go_to(self, name: str, step: int) -> None:
        """The end of an arm, by the way that led there if it is not kept."""
        arm = self._arms[name]
        if arm.kept:
            self.job.rewind(_kept(name))
            return
        self._keep_start(step)
        for ran in arm.probes:
            for begin in range(0, len(ran.rates), CALL_STEPS):
                self.job.train(ran.rates[begin : begin + CALL_STEPS])

    def _forget(self, name: str) -> None:
        if self._arms.pop(name).kept:
            self.job.forget(_kept(name))


def _kept(arm: str) -> str:
    return f"arm {arm}"


def _until_due(done: int, action: Probe) -> int:
    """Steps until the probe's end or its next validation, whichever comes first."""
    left = action.steps - done
    return min(left, action.validate_every - done % action.validate_every) if action.validate_every else left


def _hopeless(losses: Iterable[float], stop_above: float | None) -> bool:
    return any(not math.isfinite(loss) or (stop_above is not None and loss > stop_above) for loss in losses)
