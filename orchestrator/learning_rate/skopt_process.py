"""The surrogate of the rate search, by scikit-optimize. Imported only when a search begins: it takes two seconds.

Positions are shares of the search interval, 0 … 1, on the scale of log rates.
"""

import warnings

import numpy as np
from numpy.typing import NDArray
from skopt import Optimizer
from skopt.learning import GaussianProcessRegressor
from skopt.learning.gaussian_process.kernels import ConstantKernel, Matern

Array = NDArray[np.float64]

CANDIDATES = 1000  # positions at which the acquisition is evaluated before its best is refined; plenty in one dimension
LENGTH_SCALE = 0.3  # of the fixed kernel: a third of the interval


def lowest_bound(x: Array, y: Array, kappa: float, fixed_kernel: bool, seed: int) -> float:
    """The position where mean − kappa·sd is lowest, given losses `y` at positions `x`."""
    process = _fixed_process() if fixed_kernel else "GP"
    optimizer = Optimizer(
        [(0.0, 1.0)],
        process,
        n_initial_points=1,
        acq_func="LCB",
        acq_func_kwargs={"kappa": kappa},
        acq_optimizer="lbfgs",
        acq_optimizer_kwargs={"n_points": CANDIDATES, "n_restarts_optimizer": 1},
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # equal losses and kernel bounds are no news to whoever trains
        optimizer.tell([[float(position)] for position in x], [float(loss) for loss in y])
        return float(optimizer.ask()[0])


def posterior(x: Array, y: Array, at: Array, seed: int) -> tuple[Array, Array]:
    """Mean and standard deviation of the fitted process at the positions `at`."""
    optimizer = Optimizer([(0.0, 1.0)], "GP", n_initial_points=1, acq_optimizer="sampling", random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        optimizer.tell([[float(position)] for position in x], [float(loss) for loss in y])
        mean, sd = optimizer.models[-1].predict(at.reshape(-1, 1), return_std=True)
    return mean, sd


def _fixed_process() -> GaussianProcessRegressor:
    """A process whose standard deviation depends on the positions alone, and which needs no fitting."""
    kernel = ConstantKernel(1.0, "fixed") * Matern(LENGTH_SCALE, "fixed", nu=2.5)
    return GaussianProcessRegressor(kernel, alpha=1e-6, normalize_y=True, noise=None)
