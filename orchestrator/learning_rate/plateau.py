"""Lower the rate when the validation loss no longer falls, as torch's ReduceLROnPlateau does, in ask/tell form."""

import math
from dataclasses import dataclass

from orchestrator.learning_rate.checks import require, require_budget, require_positive
from orchestrator.learning_rate.forecast import tail_mean
from orchestrator.learning_rate.policy import (
    Choice,
    Finding,
    Json,
    Series,
)
from orchestrator.learning_rate.scheduled import require_floor
from orchestrator.learning_rate.schedules import Constant, Schedule
from orchestrator.learning_rate.staged import Staged

USUAL_STAGES = 20


@dataclass(frozen=True, kw_only=True)
class PlateauOptions:
    """The rate is multiplied by `factor`, down to `min_lr` at most, after `patience` validations without gain.

    A gain is a loss lower than the best by the share `threshold`. The rate changes between stages: 20 unless given.
    """

    rate: float = 1e-3
    min_lr: float = 0.0
    factor: float = 0.5
    patience: int = 3
    threshold: float = 1e-3
    stages: int | None = None
    validate_every: int | None = None

    def check(self, steps: int) -> None:
        """UserError where a parameter makes no sense."""
        require_budget(steps, self.stages)
        require_positive(rate=self.rate, patience=self.patience, validate_every=self.validate_every)
        require(0 < self.factor < 1, f"lr.factor is {self.factor}: set it between 0 and 1.")
        require(0 <= self.threshold < 1, f"lr.threshold is {self.threshold}: set it from 0 to below 1.")
        require_floor(self.min_lr, self.rate)


class Plateau(Staged):
    """Trains at one rate a stage, and lowers it between stages."""

    def __init__(self, steps: int, options: PlateauOptions) -> None:
        options.check(steps)
        super().__init__(steps, options.stages or min(USUAL_STAGES, steps), options.validate_every)
        self._options = options
        self._rate = options.rate
        self._best: float | None = None
        self._waited = 0  # validations since the last gain

    def _schedule(self) -> Schedule:
        return Constant(self._rate)

    def _react(self, series: Series) -> tuple[Finding, ...]:
        for loss in _scores(series):
            self._note(loss)
        return self._lower() if self._waited >= self._options.patience and not self._finished else ()

    def state(self) -> Json:
        return {**super().state(), "rate": self._rate, "best": self._best, "waited": self._waited}

    def load_state(self, state: Json) -> None:
        super().load_state(state)
        self._rate, self._best, self._waited = state["rate"], state["best"], state["waited"]

    def _note(self, loss: float) -> None:
        if math.isfinite(loss) and (
            self._best is None or loss < self._best - abs(self._best) * self._options.threshold
        ):
            self._best, self._waited = loss, 0
        else:
            self._waited += 1

    def _lower(self) -> tuple[Finding, ...]:
        waited, before = self._waited, self._rate
        self._rate, self._waited = max(before * self._options.factor, self._options.min_lr), 0
        if self._rate == before:
            return ()
        reason = f"no gain in {waited} validations, so the rate falls from {before:.3g} to {self._rate:.3g}"
        return (Choice(self._stage + 1, self._rate, reason, self._length),)


def _scores(series: Series) -> list[float]:
    """Validation losses, or one mean of the last training losses where nothing was validated."""
    if series.validation:
        return [loss for _, loss in series.validation]
    return [tail_mean(series.train)] if series.train else []
