"""The seam between deciding a learning rate and training with it: ask/tell, as in Optuna's samplers.

A policy is asked for the next action, the action is carried out by whoever trains, and its outcome is told back.
Policies know nothing of clusters, and their state is plain JSON:

    while (action := policy.ask()) is not None:
        findings = policy.tell(carry_out(action))
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from orchestrator.learning_rate.dimensions import Settings
from orchestrator.learning_rate.schedules import Schedule

Json = dict[str, Any]


@dataclass(frozen=True)
class Train:
    """Take `steps` real steps; step number s of the run (from 0) uses `schedule.rate(s)`. Ends with a snapshot.

    With `take_up`, go to the kept end of that arm first: the steps that led there are real from then on, and
    `first_step` is the one after them. `settings` hold for all of these steps.
    """

    stage: int
    schedule: Schedule
    first_step: int
    steps: int
    validate_every: int | None = None  # steps between validations; always one at the end
    take_up: str | None = None
    settings: Settings = field(default_factory=dict)


@dataclass(frozen=True)
class Probe:
    """Try each candidate for `steps` steps, and come back to the present state after each.

    A candidate's schedule is evaluated at `taken` … taken+steps-1. A candidate whose loss stops being finite, or
    exceeds `stop_above`, may be ended early; its series are then shorter.

    `arms` names the candidates: the end of each is kept under its name. A later probe of the same arm, with `taken`
    steps behind it, goes on from there instead of from the present state. Ends named neither in `arms` nor in `needed`
    are not asked for again. `settings`: one a candidate, where they differ from what is configured.
    """

    stage: int
    candidates: tuple[Schedule, ...]
    steps: int
    purpose: str  # "range_test" or "search"
    validate_every: int | None = None  # None: no validation during a probe; else also at its end
    stop_above: float | None = None
    arms: tuple[str, ...] = ()
    taken: int = 0
    needed: tuple[str, ...] = ()
    settings: tuple[Settings, ...] = ()

    def asked(self) -> Iterator[tuple[str | None, Schedule, Settings]]:
        """Each candidate's arm, if it has one, its schedule and its settings."""
        arms = self.arms or (None,) * len(self.candidates)
        return zip(arms, self.candidates, self.settings or ({},) * len(self.candidates), strict=True)


Action = Train | Probe


@dataclass(frozen=True)
class Series:
    """Losses seen: `train[i]` is the mean over ranks at step i; `validation` holds (steps taken, loss) pairs."""

    train: tuple[float, ...]
    validation: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Trained:
    """Outcome of a Train."""

    series: Series


@dataclass(frozen=True)
class Probed:
    """Outcome of a Probe: one series a candidate, in the order asked."""

    series: tuple[Series, ...]


Outcome = Trained | Probed


@dataclass(frozen=True)
class Forecast:
    """What a policy made of one arm: the loss it reached, and the one expected `horizon` steps from its start."""

    stage: int
    rate: float
    loss: float
    horizon: int
    quality: float  # 0 (no better than a constant) … 1 (the curve explains the series)
    diverged: bool
    reached: float | None = None
    steps: int | None = None  # that the arm was tried for
    low: float | None = None  # the forecast's 90 % interval, where the run's own past says how far it may be off
    high: float | None = None
    settings: Settings = field(default_factory=dict)

    def chosen_by(self, choice: "Choice") -> bool:
        """Whether this is the arm that a stage goes on with."""
        return (self.rate, self.settings) == (choice.rate, choice.settings)


@dataclass(frozen=True)
class Choice:
    """The rate that a stage will use, with `settings`, and what spoke for it.

    `surrogate` rows are (rate, mean, standard deviation).
    """

    stage: int
    rate: float
    reason: str
    steps: int
    surrogate: tuple[tuple[float, float, float], ...] = ()
    settings: Settings = field(default_factory=dict)


@dataclass(frozen=True)
class RangeFound:
    """The interval in which rates will be searched."""

    low: float
    high: float
    reason: str


Finding = Forecast | Choice | RangeFound


@dataclass(frozen=True)
class Cost:
    """What a policy will spend, known beforehand: steps are optimizer steps of the whole job.

    `probe_steps` are those thrown away, an upper bound unless every rate that is tried diverges. Where both share one
    budget, what the search leaves goes into training. `also_steps`: those of them that go to settings besides the rate.
    Where the batch's size is searched, a step is one with the batch that is configured, and half of it half a step.
    """

    stages: int
    train_steps: int
    probe_steps: int
    also_steps: int = 0


class Policy(ABC):
    """Decides learning rates. Deterministic: equal outcomes give equal actions."""

    @abstractmethod
    def ask(self) -> Action | None:
        """The next action, or None when the budget is spent. Asking twice without telling gives the same action."""

    @abstractmethod
    def tell(self, outcome: Outcome) -> tuple[Finding, ...]:
        """Take the outcome of the action last asked for; returns what was concluded from it."""

    @abstractmethod
    def cost(self) -> Cost:
        """The whole run's cost."""

    @abstractmethod
    def state(self) -> Json:
        """Everything needed to go on later, as plain JSON values."""

    @abstractmethod
    def load_state(self, state: Json) -> None:
        """Take up a state that `state()` gave, possibly after a trip through JSON text."""
