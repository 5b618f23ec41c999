"""A plain Gaussian process on 0 … 1: milliseconds a search, and nothing about it is random.

Matérn 5/2 kernel of fixed length, losses standardised, fixed noise; same two methods as `skopt_process` has functions.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class GaussianProcess:
    """length: of the kernel. noise: variance, in units of the losses' own. apart: least distance of a proposal from x.

    Lengths are shares of the search interval, on the scale of log rates. candidates: positions that are compared.
    """

    length: float = 0.3
    noise: float = 1e-3
    candidates: int = 1001
    apart: float = 0.0

    def lowest_bound(self, x: Array, y: Array, kappa: float, fixed_kernel: bool, seed: int) -> float:
        """The position where mean − kappa·sd is lowest, given losses `y` at positions `x`; x[0] if none is apart."""
        grid = np.linspace(0, 1, self.candidates)
        free = grid[np.abs(grid[:, None] - x).min(axis=1) >= self.apart]
        if free.size == 0:
            return float(x[0])
        mean, sd = self.posterior(x, y, free, seed)
        return float(free[np.argmin(mean - kappa * sd)])

    def posterior(self, x: Array, y: Array, at: Array, seed: int) -> tuple[Array, Array]:
        """Mean and standard deviation at the positions `at` (Rasmussen and Williams 2006, algorithm 2.1)."""
        scale = float(y.std()) or 1.0
        factor = np.linalg.cholesky(self._kernel(x, x) + self.noise * np.eye(x.size))
        projected = np.linalg.solve(factor, self._kernel(x, at))
        mean = projected.T @ np.linalg.solve(factor, (y - y.mean()) / scale)
        variance = np.clip(1 - (projected**2).sum(axis=0), 0, None)
        return y.mean() + scale * mean, scale * np.sqrt(variance)

    def _kernel(self, a: Array, b: Array) -> Array:
        """Matérn with ν = 5/2 and unit variance."""
        distance = np.sqrt(5) * np.abs(a[:, None] - b[None, :]) / self.length
        covariance: Array = (1 + distance + distance**2 / 3) * np.exp(-distance)
        return covariance
