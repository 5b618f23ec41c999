"""Policies that know every rate beforehand: constant, cosine, linear, one cycle, step.

They only ever ask for training, in pieces of about equal length, so that a snapshot can be taken after each.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from orchestrator.learning_rate.checks import require, require_budget, require_positive, require_share
from orchestrator.learning_rate.schedules import Constant, Cosine, Linear, OneCycle, Schedule, Step
from orchestrator.learning_rate.staged import Staged

USUAL_STAGES = 8


@dataclass(frozen=True, kw_only=True)
class ScheduleOptions(ABC):
    """What all of these policies take.

    rate: the highest learning rate. stages: pieces between snapshots, 8 unless given. validate_every: steps between
    validations, about twenty a run unless given.
    """

    rate: float = 1e-3
    stages: int | None = None
    validate_every: int | None = None

    @abstractmethod
    def schedule(self, steps: int) -> Schedule:
        """The schedule of a run of `steps`."""

    def check(self, steps: int) -> None:
        """UserError where a parameter makes no sense."""
        require_budget(steps, self.stages)
        require_positive(rate=self.rate, validate_every=self.validate_every)


@dataclass(frozen=True, kw_only=True)
class ConstantOptions(ScheduleOptions):
    """One rate throughout."""

    def schedule(self, steps: int) -> Schedule:
        return Constant(self.rate)


@dataclass(frozen=True, kw_only=True)
class CosineOptions(ScheduleOptions):
    """Warm-up for a share of the run, then half a cosine down to min_lr."""

    min_lr: float = 0.0
    warmup: float = 0.05

    def check(self, steps: int) -> None:
        super().check(steps)
        require_share(warmup=self.warmup)
        require_floor(self.min_lr, self.rate)

    def schedule(self, steps: int) -> Schedule:
        return Cosine(self.rate, steps, warmup=int(self.warmup * steps), floor=self.min_lr)


@dataclass(frozen=True, kw_only=True)
class LinearOptions(ScheduleOptions):
    """Warm-up for a share of the run, stable, then a linear decay to min_lr over the last share."""

    min_lr: float = 0.0
    warmup: float = 0.05
    decay: float = 0.2

    def check(self, steps: int) -> None:
        super().check(steps)
        require_share(warmup=self.warmup)
        room = 1 - self.warmup
        require(0 <= self.decay <= room, f"lr.decay is {self.decay}, a share of all steps: set it from 0 to {room:g}.")
        require_floor(self.min_lr, self.rate)

    def schedule(self, steps: int) -> Schedule:
        return Linear(self.rate, steps, int(self.warmup * steps), int(self.decay * steps), self.min_lr)


@dataclass(frozen=True, kw_only=True)
class OneCycleOptions(ScheduleOptions):
    """Up from rate/start_factor within a share of the run, then down to rate/end_factor (Smith 2018)."""

    rise: float = 0.3
    start_factor: float = 25.0
    end_factor: float = 1e4

    def check(self, steps: int) -> None:
        super().check(steps)
        require_share(rise=self.rise)
        require_positive(start_factor=self.start_factor, end_factor=self.end_factor)

    def schedule(self, steps: int) -> Schedule:
        rate = self.rate
        return OneCycle(rate, steps, int(self.rise * steps), rate / self.start_factor, rate / self.end_factor)


@dataclass(frozen=True, kw_only=True)
class StepOptions(ScheduleOptions):
    """The rate is multiplied by `factor` `drops` times, after equal parts of the run."""

    factor: float = 0.1
    drops: int = 2

    def check(self, steps: int) -> None:
        super().check(steps)
        require(0 < self.factor <= 1, f"lr.factor is {self.factor}: set it above 0 and at most to 1.")
        require(self.drops >= 0, f"lr.drops is {self.drops}: set it to 0 or more.")

    def schedule(self, steps: int) -> Schedule:
        return Step(self.rate, -(-steps // (self.drops + 1)), self.factor)


def require_floor(min_lr: float, rate: float) -> None:
    """The lowest rate must lie below the highest."""
    require(min_lr >= 0, f"lr.min_lr is {min_lr}: set it to 0 or more.")
    require(min_lr < rate, f"lr.min_lr is {min_lr}, not below lr.rate = {rate}: lower lr.min_lr or raise lr.rate.")


class Scheduled(Staged):
    """Trains along one schedule."""

    def __init__(self, steps: int, options: ScheduleOptions) -> None:
        options.check(steps)
        super().__init__(steps, options.stages or min(USUAL_STAGES, steps), options.validate_every)
        self._whole = options.schedule(steps)

    def _schedule(self) -> Schedule:
        return self._whole
