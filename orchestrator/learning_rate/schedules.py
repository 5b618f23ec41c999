"""Learning rate as a function of the step: the plain values that policies hand to whoever trains.

Every schedule is a frozen dataclass of numbers, so it compares, travels as JSON and can be evaluated anywhere.
A schedule that ends keeps its last rate afterwards.
"""

import dataclasses
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


class Schedule(ABC):
    """A learning rate for every step, counted from 0."""

    @abstractmethod
    def rate(self, step: int) -> float:
        """The learning rate of that optimizer step."""


@dataclass(frozen=True)
class Constant(Schedule):
    """One rate throughout."""

    value: float

    def rate(self, step: int) -> float:
        return self.value


@dataclass(frozen=True)
class Linear(Schedule):
    """Rise linearly to `peak` in `warmup` steps, hold it, fall linearly to `floor` in the last `decay` of `steps`.

    Known as warm-up, stable, decay. With decay=0 it is a warm-up followed by a constant.
    """

    peak: float
    steps: int
    warmup: int = 0
    decay: int = 0
    floor: float = 0.0

    def rate(self, step: int) -> float:
        if step < self.warmup:
            return _warmed(self.peak, step, self.warmup)
        progress = _progress(step, self.steps - self.decay, self.decay)
        return self.peak + (self.floor - self.peak) * progress


@dataclass(frozen=True)
class InversePower(Schedule):
    """Rise linearly to `peak` in `warmup` steps, hold it until `begin`, then fall as 1/stepᵉ, e being `exponent`."""

    peak: float
    warmup: int
    begin: int
    exponent: float

    def rate(self, step: int) -> float:
        if step < self.warmup:
            return _warmed(self.peak, step, self.warmup)
        return self.peak * math.pow(self.begin / max(step, self.begin), self.exponent)


@dataclass(frozen=True)
class Cosine(Schedule):
    """Rise linearly to `peak` in `warmup` steps, then fall along half a cosine to `floor` (SGDR without restarts)."""

    peak: float
    steps: int
    warmup: int = 0
    floor: float = 0.0

    def rate(self, step: int) -> float:
        if step < self.warmup:
            return _warmed(self.peak, step, self.warmup)
        progress = _progress(step, self.warmup, self.steps - self.warmup)
        return _cosine(self.peak, self.floor, progress)


@dataclass(frozen=True)
class OneCycle(Schedule):
    """From `start` up to `peak` in `rise` steps and down to `floor` at `steps`, both half cosines (Smith 2018)."""

    peak: float
    steps: int
    rise: int
    start: float
    floor: float

    def rate(self, step: int) -> float:
        if step < self.rise:
            return _cosine(self.start, self.peak, step / self.rise)
        return _cosine(self.peak, self.floor, _progress(step, self.rise, self.steps - self.rise))


@dataclass(frozen=True)
class Step(Schedule):
    """Multiply the rate by `factor` after every `every` steps."""

    initial: float
    every: int
    factor: float

    def rate(self, step: int) -> float:
        return self.initial * self.factor ** (step // self.every)


@dataclass(frozen=True)
class Exponential(Schedule):
    """From `start` to `end` by equal ratios, reaching `end` at the last of `steps`: what a range test runs."""

    start: float
    end: float
    steps: int

    def rate(self, step: int) -> float:
        return self.start * math.pow(self.end / self.start, _progress(step, 0, self.steps - 1))


_BY_NAME: dict[str, type[Schedule]] = {
    kind.__name__: kind for kind in (Constant, Linear, InversePower, Cosine, OneCycle, Step, Exponential)
}


def schedule_json(schedule: Schedule) -> Json:
    """The schedule as plain JSON values, with its name under "schedule"."""
    assert dataclasses.is_dataclass(schedule)
    return {"schedule": type(schedule).__name__, **dataclasses.asdict(schedule)}


def schedule_from_json(values: Json) -> Schedule:
    """The inverse of `schedule_json`. Only the schedules of this file can come out of it; KeyError for others."""
    fields = dict(values)
    return _BY_NAME[fields.pop("schedule")](**fields)


def _warmed(peak: float, step: int, warmup: int) -> float:
    """The first step already moves, and the last step of the warm-up runs at the peak."""
    return peak * (step + 1) / warmup


def _progress(step: int, begin: int, length: int) -> float:
    """How much of `length` steps from `begin` has passed, within 0 … 1."""
    return min(max(step - begin, 0) / length, 1.0) if length > 0 else 0.0


def _cosine(begin: float, end: float, progress: float) -> float:
    return end + (begin - end) * (1 + math.cos(math.pi * progress)) / 2
