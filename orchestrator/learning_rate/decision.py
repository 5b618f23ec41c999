"""How AutoLRS decides between the arms that came furthest, and what it says about that."""

from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from orchestrator.learning_rate.arms import Arm
from orchestrator.learning_rate.calibration import prediction_interval
from orchestrator.learning_rate.checks import require
from orchestrator.learning_rate.forecast import forecast
from orchestrator.learning_rate.policy import Forecast, Series

GENTLE, STEEP = 0.25, 0.5  # powers of the step by which a level falls
UNREACTIVE = 1e-3  # scores within this share of each other do not depend on the rate


def pick(leaders: Sequence[Arm], band: float, prefer: str) -> Arm:
    """The smallest or largest rate whose loss is within the share `band` of the best among those that came furthest.

    Settings that are not configured have to be better than that.
    """
    furthest = max(arm.done for arm in leaders)
    finalists = [arm for arm in leaders if arm.done == furthest]
    best = min(arm.score for arm in finalists)
    as_good = [arm for arm in finalists if arm.score <= best + band * abs(best)]
    as_configured = [arm for arm in as_good if not arm.settings] or as_good
    return (min if prefer == "smallest" else max)(as_configured, key=lambda arm: arm.rate)


def reason(winner: Arm, arms: Sequence[Arm], first: int) -> str:
    """What spoke for the winner, and how clearly: against the next best that came as far, or else at the first rung."""
    steps = winner.done
    rivals = [arm for arm in arms if arm is not winner and arm.scores]
    words = [f"loss {winner.score:.4g} after {steps} steps, {_margin(winner, rivals)}"]
    ended = Counter(arm.ended for arm in arms if arm.ended)
    words += [f"{count} of {len(arms)} {how}" for how, count in sorted(ended.items())]
    scores = [arm.score_at(first) for arm in arms if arm.scores]
    if len(scores) > 2 and max(scores) - min(scores) < UNREACTIVE * abs(min(scores)):
        words.append("the loss hardly reacts to the rate")
    return "; ".join(words)


def forecast_of(stage: int, arm: Arm, horizon: int, curves: Sequence[Sequence[float]]) -> Forecast:
    """What an arm came to, and where its training loss was going; `curves` are those of all arms."""
    found = forecast(arm.losses, horizon)
    reached = arm.score if arm.scores else (arm.tail() if arm.losses else None)
    steps, diverged = len(arm.losses), arm.ended == "diverged"
    low, high = prediction_interval(arm.losses, horizon, curves) or (None, None)
    seen = (found.loss, horizon, found.quality, diverged, reached, steps)
    return Forecast(stage, arm.rate, *seen, low, high, arm.settings)


def exponent(series: Series) -> float:
    """How fast a level falls after these losses: the faster, the more noise is in the iterates.

    That noise is what training losses, at the iterates, lie above the validation loss of their average, as a share.
    """
    average = series.validation[-1][1] if series.validation else 0.0
    noise = (fmean(series.train) - average) / abs(average) if average else 0.0
    return min(max(GENTLE, noise), STEEP)


def require_finite_start(arms: Sequence[Arm]) -> None:
    """UserError if no arm saw a finite loss at all: the rate has no part in that."""
    require(
        any(arm.losses for arm in arms),
        "the loss is not finite at the very first step, whatever the rate: check the data, the loss and the precision.",
    )


def _margin(winner: Arm, rivals: Sequence[Arm]) -> str:
    """How far the winner is from the best of its rivals that came furthest, where both were scored last."""
    furthest = max((arm.scores[-1][0] for arm in rivals), default=0)
    rival = min((arm for arm in rivals if arm.scores[-1][0] == furthest), key=lambda arm: arm.score, default=None)
    if rival is None:
        return "the only rate that held"
    excess = (winner.score_at(int(furthest)) - rival.score) / abs(rival.score or 1)
    if excess > 0:
        return f"as good as the best, which is {excess:.1%} lower"
    return f"{-excess:.1%} below the next best"
