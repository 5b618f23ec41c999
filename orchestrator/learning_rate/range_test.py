"""From a range test (the rate rises exponentially, one step each) to the interval in which rates will be searched.

The upper end is half the rate at which the loss leaves its minimum for good, the lower end a thousandth of that
(Smith 2015, "Cyclical Learning Rates", gave the test; the two factors are ours).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from orchestrator.learning_rate.forecast import running_median
from orchestrator.learning_rate.interval import WIDTH, Interval

Array = NDArray[np.float64]

LOWEST, HIGHEST = 1e-7, 10.0  # rates where a test begins and ends
EXPLODED = 1.5  # times its smoothed minimum: where the loss counts as running away
NOISE_FACTOR = 6.0  # a rise within this many times the usual distance from the smoothed loss is no rise


def interval_from(rates: Sequence[float], losses: Sequence[float]) -> tuple[Interval, bool]:
    """The interval that a test's losses suggest, and whether they diverged at all.

    `losses` may be shorter than `rates` where the test was stopped.

    A test that never diverges ends at its highest rate. One that diverges at once still gives an interval, below it.
    """
    broken = _first_broken(losses)
    y = np.asarray(losses[:broken], dtype=np.float64)
    diverged_at = _runaway(y) if y.size else None
    if diverged_at is None and (broken < len(losses) or len(losses) < len(rates)):
        diverged_at = min(broken, len(rates) - 1)
    high = rates[-1] if diverged_at is None else rates[diverged_at] / 2
    return Interval(high / WIDTH, high), diverged_at is not None


def _first_broken(losses: Sequence[float]) -> int:
    """Position of the first loss that is not finite, or the number of losses."""
    broken = np.flatnonzero(~np.isfinite(np.asarray(losses, dtype=np.float64)))
    return int(broken[0]) if broken.size else len(losses)


def _runaway(y: Array) -> int | None:
    """Where the smoothed loss first leaves its minimum so far, if it does so beyond the noise."""
    smooth = running_median(y)
    lowest = np.minimum.accumulate(smooth)
    noise = NOISE_FACTOR * float(np.median(np.abs(y - smooth)))
    rise = np.maximum((EXPLODED - 1) * np.abs(lowest), noise)
    above = np.flatnonzero(smooth > lowest + rise)
    return int(above[0]) if above.size else None
