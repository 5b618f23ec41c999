"""A plain Gaussian process on 0 … 1, so that a search goes on where scikit-optimize cannot be imported.

Matérn 5/2 kernel of fixed length, losses standardised, fixed noise; same two functions as `skopt_process`.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LENGTH_SCALE = 0.3
NOISE = 1e-3  # variance, in units of the losses' own variance
CANDIDATES = 1001


def lowest_bound(x: Array, y: Array, kappa: float, fixed_kernel: bool, seed: int) -> float:
    """The position where mean − kappa·sd is lowest. The kernel is always fixed, and nothing is drawn at random."""
    grid = np.linspace(0, 1, CANDIDATES)
    mean, sd = posterior(x, y, grid, seed)
    return float(grid[np.argmin(mean - kappa * sd)])


def posterior(x: Array, y: Array, at: Array, seed: int) -> tuple[Array, Array]:
    """Mean and standard deviation at the positions `at` (Rasmussen and Williams 2006, algorithm 2.1)."""
    scale = float(y.std()) or 1.0
    factor = np.linalg.cholesky(_kernel(x, x) + NOISE * np.eye(x.size))
    projected = np.linalg.solve(factor, _kernel(x, at))
    mean = projected.T @ np.linalg.solve(factor, (y - y.mean()) / scale)
    variance = np.clip(1 - (projected**2).sum(axis=0), 0, None)
    return y.mean() + scale * mean, scale * np.sqrt(variance)


def _kernel(a: Array, b: Array) -> Array:
    """Matérn with ν = 5/2 and unit variance."""
    distance = np.sqrt(5) * np.abs(a[:, None] - b[None, :]) / LENGTH_SCALE
    covariance: Array = (1 + distance + distance**2 / 3) * np.exp(-distance)
    return covariance
