"""Which learning rates to try next: Bayesian optimisation of one stage's loss over the logarithm of the rate.

The lower confidence bound, mean − κ·sd, of a Gaussian process (Matérn 5/2) picks the next rate: scikit-optimize's
process, which fits its kernel, unless another one is given.

At the κ that AutoLRS was published with (1000 and more) the mean has no say in the choice, so the rates fill the
interval whatever the losses are. `ask` makes use of that: with the kernel held fixed, all rates of a stage are known at
once and cheaply. Losses still shape the surrogate that is reported.
"""

import math
import warnings
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from orchestrator.learning_rate.forecast import HUGE
from orchestrator.learning_rate.gaussian_process import GaussianProcess

Json = dict[str, Any]
Array = NDArray[np.float64]

FILLING = 1000.0  # from this κ on the losses do not influence which rates are asked for
SAME = 1e-6  # rates closer than this share of the interval are one rate


class Process(Protocol):
    """A surrogate of losses `y` at positions `x`: shares of the search interval, on the scale of log rates."""

    def lowest_bound(self, x: Array, y: Array, kappa: float, fixed_kernel: bool, seed: int) -> float:
        """The position where mean − kappa·sd is lowest."""

    def posterior(self, x: Array, y: Array, at: Array, seed: int) -> tuple[Array, Array]:
        """Mean and standard deviation at the positions `at`."""


class RateSearch:
    """Ask for rates within [low, high], tell their losses. Equal seeds and losses give equal rates."""

    def __init__(
        self, low: float, high: float, seed: int = 0, kappa: float = FILLING, process: Process | None = None
    ) -> None:
        self.low, self.high, self.seed, self.kappa = low, high, seed, kappa
        self._process = process
        self.points: list[tuple[float, float]] = []  # (rate, loss as told)

    @property
    def filling(self) -> bool:
        """Whether all rates can be asked for at once without loss."""
        return self.kappa >= FILLING

    def ask(self, count: int = 1) -> list[float]:
        """The next rates to try. More than one are chosen as if each had come back with a middling loss."""
        rates = [rate for rate, _ in self.points]
        losses = [] if self.filling else self._finite_losses().tolist()
        for _ in range(count):
            middling = float(np.mean(losses)) if losses else 0.0
            pretended = losses + [middling] * (len(rates) - len(losses))
            rates.append(self._rate(self._next([self._position(rate) for rate in rates], pretended)))
        return rates[len(self.points) :]

    def tell(self, rate: float, loss: float) -> None:
        """Take a rate's loss; a loss that is not finite counts as somewhat worse than the worst."""
        self.points.append((min(max(float(rate), self.low), self.high), float(loss)))

    def curve(self, rows: int = 41) -> tuple[tuple[float, float, float], ...]:
        """The surrogate as (rate, mean, standard deviation) over the interval; empty with nothing told."""
        if not self.points:
            return ()
        grid = np.linspace(0, 1, rows)
        x = np.array([self._position(rate) for rate, _ in self.points])
        mean, sd = (self._process or _engine()).posterior(x, self._finite_losses(), grid, self.seed % 2**32)
        return tuple((self._rate(position), float(m), float(s)) for position, m, s in zip(grid, mean, sd, strict=True))

    def state(self) -> Json:
        """The points told, as plain JSON; losses that are not finite become None."""
        return {"points": [[rate, loss if math.isfinite(loss) else None] for rate, loss in self.points]}

    def load_state(self, state: Json) -> None:
        self.points = [(rate, math.inf if loss is None else loss) for rate, loss in state["points"]]

    def _next(self, positions: Sequence[float], losses: Sequence[float]) -> float:
        seed = (self.seed + len(positions)) % 2**32
        if not positions:
            return float(np.random.default_rng(seed).uniform())
        x, y = np.array(positions), np.array(losses)
        proposal = (self._process or _engine()).lowest_bound(x, y, self.kappa, self.filling, seed)
        if min(abs(proposal - position) for position in positions) < SAME:
            return _middle_of_widest_gap(positions)
        return proposal

    def _finite_losses(self) -> Array:
        """Losses with the diverged ones put as far above the worst finite one as that lies above the best."""
        losses = np.array([loss for _, loss in self.points])
        usable = np.abs(losses) < HUGE
        finite = losses[usable]
        if finite.size == 0:
            return np.zeros_like(losses)
        margin = float(finite.max() - finite.min()) or max(abs(float(finite.max())), 1.0)
        clamped: Array = np.where(usable, losses, finite.max() + margin)
        return clamped

    def _position(self, rate: float) -> float:
        return min(max(math.log(rate / self.low) / math.log(self.high / self.low), 0.0), 1.0)

    def _rate(self, position: float) -> float:
        return min(max(self.low * math.pow(self.high / self.low, position), self.low), self.high)


def _middle_of_widest_gap(positions: Sequence[float]) -> float:
    edges = sorted({0.0, 1.0, *positions})
    left, right = max(pairwise(edges), key=lambda gap: gap[1] - gap[0])
    return (left + right) / 2


@lru_cache(maxsize=1)
def _engine() -> Process:
    """scikit-optimize, or our own plain Gaussian process where it cannot be imported."""
    try:
        from orchestrator.learning_rate import skopt_process
    except (ImportError, AttributeError) as error:
        warnings.warn(
            f"scikit-optimize cannot be imported ({error}); learning rates are searched with a plain Gaussian process "
            "instead. Mend it with: pip install 'scikit-optimize>=0.10.2,<0.11'",
            stacklevel=2,
        )
        return GaussianProcess()
    return skopt_process
