"""How far a forecast may be off, judged by the run itself: by what its curves' beginnings foretold of what followed.

Split conformal prediction (Vovk et al. 2005; Lei et al. 2018): the half width is a quantile of past relative errors,
made at the same ratio of horizon to steps seen, or as near to it as curves of this length allow.
"""

import math
from collections.abc import Iterable, Iterator, Sequence

from orchestrator.learning_rate.forecast import forecast, tail_mean

LEAST_SEEN = 8  # steps from which a curve is extrapolated at all
FORECASTS_A_CURVE = 12
RECENT = 5  # steps whose mean is the loss that really came


def prediction_interval(
    losses: Sequence[float], at: int, curves: Iterable[Sequence[float]], share: float = 0.9
) -> tuple[float, float] | None:
    """Where the training loss of step `at` will lie with probability `share`, given all `curves` of the run so far.

    None where fewer past forecasts than 1/(1-share) can be made.
    """
    if len(losses) < LEAST_SEEN or at <= len(losses):
        return None
    errors = sorted(error for curve in curves for error in _past_errors(curve, at / len(losses)))
    place = math.ceil((len(errors) + 1) * share)
    if place > len(errors):
        return None
    middle = forecast(losses, at).loss
    half = errors[place - 1] * abs(tail_mean(losses))
    return max(middle - half, min(0.0, *losses)), middle + half


def _past_errors(curve: Sequence[float], ratio: float) -> Iterator[float]:
    """Errors of the forecasts that a curve's beginnings give of its later losses, as shares of the loss seen last."""
    for at in range(len(curve), 2 * LEAST_SEEN - 1, -max(1, len(curve) // FORECASTS_A_CURVE)):
        seen = curve[: max(LEAST_SEEN, int(at / ratio))]
        came = curve[max(0, at - RECENT) : at]
        yield abs(sum(came) / len(came) - forecast(seen, at).loss) / (abs(tail_mean(seen)) or 1.0)
