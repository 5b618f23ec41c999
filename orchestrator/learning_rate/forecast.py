"""The loss a training run would reach later, from the losses of its first steps: L(t) = a·exp(−t/T) + c.

AutoLRS (arXiv 2105.10762) fits a parabola to the losses, then this curve to the parabola. Both steps are replaced
here: the published code does not recover its own model, falls below zero on straight lines, and fails on short,
rising or broken series. Instead:

* one fit by variable projection: for each time constant T, a and c are a weighted linear least-squares problem;
  points far from the curve fade, so nothing has to be smoothed beforehand;
* the forecast is the mean over time constants, each weighted by its likelihood, so that a series that does not
  determine its time constant is not extrapolated as if it did;
* c stays above the known floor, and at most three times the gain already seen is expected on top of it.

On short probes of real trainings (tests/data/autolrs.json) this ranks rates about as well as the published forecaster,
and less well than simply the last losses: a forecast is worth reporting, with its quality, and to be trusted with care.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

GRID = 32  # time constants tried at once
GAIN_CAP = 3.0  # further gain expected, at most, as a multiple of the gain seen
HUGE = 1e100  # a loss beyond this counts as infinite
ROBUST_ROUNDS = 2
ZOOMS = 4
FADE = 4.0  # residuals beyond this many robust standard deviations count for nothing (Tukey's biweight)


@dataclass(frozen=True)
class Extrapolation:
    """A finite `loss` between the floor and the largest loss seen; `quality` is the share of variance explained, 0 … 1.

    `diverged`: a loss was not finite, or the series ends far above where it began; such a rate is not to be chosen.
    """

    loss: float
    quality: float
    diverged: bool


def forecast(
    losses: Sequence[float], at: float, steps: Sequence[float] | None = None, floor: float = 0.0
) -> Extrapolation:
    """Extrapolate `losses`, seen at `steps` (rising; 0, 1, 2 … unless given), to step `at`. Takes about a millisecond.

    Never raises, whatever the numbers. No loss is expected below `floor`, unless some were seen below it.
    """
    y = np.asarray(losses, dtype=np.float64)
    finite = np.abs(y) < HUGE
    if not finite.all() or y.size == 0:
        return Extrapolation(float(y[finite].max(initial=floor)), 0.0, diverged=True)
    ceiling = float(y.max())
    if _rose_away(y):
        return Extrapolation(ceiling, 0.0, diverged=True)
    x = np.arange(y.size, dtype=np.float64) if steps is None else np.asarray(steps, dtype=np.float64)
    scale = max(float(np.abs(y).max()), np.finfo(np.float64).tiny)
    lowest = floor if y.min() >= floor else float(y.min()) - 2 * GAIN_CAP * (ceiling - float(y.min()))
    with np.errstate(over="ignore", under="ignore"):
        loss, quality = _extrapolate(x, y / scale, float(at), lowest / scale)
    return Extrapolation(float(np.clip(loss * scale, lowest, ceiling)), quality, diverged=False)


def tail_mean(losses: Sequence[float]) -> float:
    """Mean of the last quarter: what a series has surely reached."""
    last = losses[-max(1, len(losses) // 4) :]
    return sum(last) / len(last)


def running_median(y: Array) -> Array:
    """Median of five neighbours, so that one bad batch counts for nothing; the ends repeat."""
    padded = np.pad(y, 2, mode="edge")
    return np.median(np.lib.stride_tricks.sliding_window_view(padded, 5), axis=-1)


def _rose_away(y: Array) -> bool:
    """Whether the last losses lie far above the first ones, beyond what noise explains."""
    head, tail = np.median(y[: max(1, y.size // 4)]), np.median(y[-3:])
    return bool(tail > 2 * abs(head) + FADE * _spread(y - running_median(y)))


def _extrapolate(x: Array, y: Array, at: float, floor: float) -> tuple[float, float]:
    """Forecast and quality. A series too short for a curve, or past `at` already, is expected to stay where it is."""
    if y.size < 4 or at <= x[-1] or x[0] >= x[-1]:
        return tail_mean(y.tolist()), 0.0
    weights, curves = _fit_robustly(x - x[0], y, at - x[0], floor)
    variation = weights @ (y - weights @ y / weights.sum()) ** 2
    quality = 1 - curves.errors.min() / variation if variation > 0 else 0.0
    if quality <= 0:
        return tail_mean(y.tolist()), 0.0
    return float(curves.likelihood @ curves.later), float(quality)


@dataclass(frozen=True)
class _Curves:
    """One fitted curve for each time constant of a grid."""

    constants: Array
    errors: Array  # weighted sum of squares
    likelihood: Array  # under Gaussian noise of the best curve's size; sums to 1
    later: Array  # forecasts
    best_residuals: Array  # of the best curve, (points,)


def _fit_robustly(x: Array, y: Array, at: float, floor: float) -> tuple[Array, _Curves]:
    """Fit and fade the points far from the best curve, in turns; then look closer at the plausible time constants."""
    constants = np.geomspace(max(x[-1] / 16, x[1]), max(2 * at / 3, x[-1]), GRID)
    weights = _biweight(y - running_median(y))
    for _ in range(ROBUST_ROUNDS):
        curves = _fit(x, y, weights, constants, at, floor)
        weights = _biweight(curves.best_residuals)
    for _ in range(ZOOMS):
        curves = _fit(x, y, weights, constants, at, floor)
        constants = _plausible(curves)
    return weights, curves


def _fit(x: Array, y: Array, weights: Array, constants: Array, at: float, floor: float) -> _Curves:
    basis = np.exp(-x / constants[:, None])
    a, c = _least_squares(basis, y, weights, floor)
    residuals = y - a[:, None] * basis - c[:, None]
    errors = residuals**2 @ weights
    end = a * basis[:, -1] + c
    gain = GAIN_CAP * np.abs(a + c - end)
    later = np.clip(a * np.exp(-at / constants) + c, end - gain, end + gain)
    variance = max(errors.min() / max(weights.sum() - 3, 1), 1e-18 * (weights @ y**2), 1e-300)
    likelihood = np.exp((errors.min() - errors) / (2 * variance))
    return _Curves(constants, errors, likelihood / likelihood.sum(), later, residuals[errors.argmin()])


def _plausible(curves: _Curves) -> Array:
    """A finer grid over the time constants that still have a chance, and their neighbours."""
    alive = np.flatnonzero(curves.likelihood > 1e-4 * curves.likelihood.max())
    first, last = max(alive[0] - 1, 0), min(alive[-1] + 1, GRID - 1)
    return np.geomspace(curves.constants[first], curves.constants[last], GRID)


def _least_squares(basis: Array, y: Array, weights: Array, floor: float) -> tuple[Array, Array]:
    """Amplitude and end level of every time constant; a level below the floor is put on it, with a to match."""
    w = weights / weights.sum()
    mean_basis, mean_y, squares = basis @ w, y @ w, basis**2 @ w
    variance = np.maximum(squares - mean_basis**2, 1e-300)
    a = (basis @ (w * y) - mean_basis * mean_y) / variance
    c = mean_y - a * mean_basis
    sunk = c < floor
    a = np.where(sunk, (basis @ (w * y) - floor * mean_basis) / squares, a)
    return a, np.where(sunk, floor, c)


def _biweight(residuals: Array) -> Array:
    """Tukey's biweight: 1 at no residual, 0 beyond FADE robust standard deviations."""
    spread = _spread(residuals)
    if spread == 0:
        return (np.abs(residuals) <= 0).astype(np.float64)
    return np.clip(1 - (residuals / (FADE * spread)) ** 2, 0, None) ** 2


def _spread(residuals: Array) -> float:
    """Standard deviation estimated from the median absolute residual."""
    return float(1.4826 * np.median(np.abs(residuals)))
