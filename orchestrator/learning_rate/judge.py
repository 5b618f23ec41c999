"""What AutoLRS makes of a stage's probes: a forecast of each, and the rate that wins."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.learning_rate.forecast import Extrapolation, forecast, tail_mean
from orchestrator.learning_rate.policy import Series
from orchestrator.learning_rate.published_plan import Stage


@dataclass(frozen=True)
class Verdict:
    """One probe's outcome: `loss` as forecast for the stage's end, `reached` in the probe itself. Both are finite."""

    rate: float
    loss: float
    reached: float
    quality: float
    diverged: bool


def judge(stage: Stage, rate: float, series: Series, first_loss: float | None) -> Verdict:
    """The verdict on a probe of `stage`. `first_loss` is the first training loss of the whole run.

    By validation losses where the stage uses them and there are any, else by training losses. A series shorter than
    the probe was ended early, which happens only where the loss left all bounds.
    """
    found = forecast(series.train, at=stage.steps)
    diverged = found.diverged or len(series.train) < stage.probe_steps
    reached = found.loss if diverged else tail_mean(series.train)
    if stage.validate_every is not None and series.validation and not diverged:
        found = _forecast_validation(stage, series, first_loss)
        diverged = found.diverged
        reached = found.loss if diverged else series.validation[-1][1]
    return Verdict(rate, found.loss, reached, 0.0 if diverged else found.quality, diverged)


def best(verdicts: Sequence[Verdict], rank_by: str) -> Verdict | None:
    """The lowest among the probes that held; ties go to the lower loss reached, then to the higher rate."""
    held = [verdict for verdict in verdicts if not verdict.diverged]
    return min(held, key=lambda verdict: (objective(verdict, rank_by), verdict.reached, -verdict.rate), default=None)


def objective(verdict: Verdict, rank_by: str) -> float:
    """What probes are compared by, and what the search is told: the "forecast", or the loss "reached"."""
    if verdict.diverged:
        return math.inf
    return verdict.loss if rank_by == "forecast" else verdict.reached


def _forecast_validation(stage: Stage, series: Series, first_loss: float | None) -> Extrapolation:
    """As published, no forecast is made where a validation loss is no better than the run's first training loss."""
    steps, losses = zip(*series.validation, strict=True)
    found = forecast(losses, at=stage.steps, steps=steps)
    if found.diverged or first_loss is None or max(losses) < first_loss:
        return found
    return Extrapolation(losses[-1], 0.0, diverged=False)
