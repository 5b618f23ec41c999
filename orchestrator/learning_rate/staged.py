"""What policies without probes share: training in pieces of about equal length, with a snapshot after each."""

from abc import abstractmethod

from orchestrator.learning_rate.policy import Action, Cost, Finding, Json, Outcome, Policy, Series, Train, Trained
from orchestrator.learning_rate.schedules import Schedule

USUAL_VALIDATIONS = 20


class Staged(Policy):
    """Asks for one Train a stage. Stages count from 1."""

    def __init__(self, steps: int, stages: int, validate_every: int | None) -> None:
        self._bounds = bounds(steps, stages)
        self._validate_every = validate_every or usual_validate_every(steps)
        self._stage = 0  # stages done

    @abstractmethod
    def _schedule(self) -> Schedule:
        """The schedule of the next stage."""

    def _react(self, series: Series) -> tuple[Finding, ...]:
        """What follows from a stage's losses; nothing, unless a policy says otherwise."""
        return ()

    def ask(self) -> Action | None:
        if self._finished:
            return None
        return Train(self._stage + 1, self._schedule(), self._first_step, self._length, self._validate_every)

    def tell(self, outcome: Outcome) -> tuple[Finding, ...]:
        if not isinstance(outcome, Trained) or self._finished:
            raise ValueError(f"A {type(outcome).__name__} was told, but {self.ask()} was asked for.")
        self._stage += 1
        return self._react(outcome.series)

    def cost(self) -> Cost:
        return Cost(stages=len(self._bounds) - 1, train_steps=self._bounds[-1], probe_steps=0)

    def state(self) -> Json:
        return {"stage": self._stage}

    def load_state(self, state: Json) -> None:
        self._stage = state["stage"]

    @property
    def _finished(self) -> bool:
        return self._stage == len(self._bounds) - 1

    @property
    def _first_step(self) -> int:
        return self._bounds[self._stage]

    @property
    def _length(self) -> int:
        return self._bounds[self._stage + 1] - self._first_step


def bounds(steps: int, stages: int) -> list[int]:
    """First steps of `stages` pieces of about equal length, and the end."""
    return [steps * stage // stages for stage in range(stages + 1)]


def usual_validate_every(steps: int) -> int:
    """Steps between validations that give about twenty a run."""
    return max(1, steps // USUAL_VALIDATIONS)
