"""Which values the next trial has: a function of the search, its seed and the trials so far, and of nothing else.

So a search that is taken up again needs no state but the list of its trials.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

import numpy as np

from orchestrator.learning_rate.forecast import HUGE
from orchestrator.sweep.space import Dimension, Value, Values

BEGINNING = 5  # trials of a Bayesian search at least, and two a dimension, that are spread evenly
EXPLORING = 0.01  # of the losses' spread: how much better a place must promise to be (skopt's usual xi)


@dataclass(frozen=True)
class Tried:
    """A trial so far. loss: None while it runs; not finite where it came to nothing."""

    values: Values
    loss: float | None


def proposal(search: str, space: Sequence[Dimension], seed: int, earlier: Sequence[Tried]) -> dict[str, Value]:
    """The values of trial number len(earlier)."""
    number = len(earlier)
    if search == "grid":
        combination = next(islice(product(*(each.choices for each in space)), number, None))
        return dict(zip((each.key for each in space), combination, strict=True))
    if search == "bayes" and number < beginning(space):
        return _at(space, _spread(len(space), seed, number))
    if search == "bayes":
        return _promising(space, seed, earlier)
    return _at(space, np.random.default_rng([seed, number]).random(len(space)).tolist())


def grid_size(space: Sequence[Dimension]) -> int:
    """Combinations of all choices."""
    return math.prod(len(each.choices) for each in space)


def beginning(space: Sequence[Dimension]) -> int:
    """Trials of a Bayesian search before losses have a say."""
    return max(BEGINNING, 2 * len(space))


def _spread(dimensions: int, seed: int, number: int) -> list[float]:
    """Point `number` of a scrambled Halton sequence (Owen 2017, arXiv 1706.02808)."""
    from scipy.stats.qmc import Halton

    point: list[float] = Halton(dimensions, seed=seed).random(number + 1)[number].tolist()
    return point


def _promising(space: Sequence[Dimension], seed: int, earlier: Sequence[Tried]) -> dict[str, Value]:
    """Where a Gaussian process expects most improvement (Jones, Schonlau, Welch 1998).

    Trials that still run count with a middling loss: the constant liar of Ginsbourger, Le Riche, Carraro 2010, sec. 4.
    """
    from skopt import Optimizer

    points = [[tried.values[each.key] for each in space] for tried in earlier]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # equal losses and kernel bounds are no news to whoever searches
        optimizer = Optimizer(
            [_skopt_dimension(each) for each in space],
            "GP",
            n_initial_points=1,
            acq_func="EI",
            acq_func_kwargs={"xi": EXPLORING},
            random_state=(seed + len(earlier)) % 2**32,
        )
        optimizer.tell(points, pretended([tried.loss for tried in earlier]))
        asked = optimizer.ask()
    return {each.key: _plain(value) for each, value in zip(space, asked, strict=True)}


def pretended(losses: Sequence[float | None]) -> list[float]:
    """Losses fit for a Gaussian process: diverged ones lie above the worst, those not known yet in the middle."""
    finite = [loss for loss in losses if loss is not None and abs(loss) < HUGE]
    if not finite:
        return [0.0] * len(losses)
    worst = max(finite) + (max(finite) - min(finite))
    middling = float(np.mean(finite))
    return [middling if loss is None else loss if abs(loss) < HUGE else worst for loss in losses]


def _skopt_dimension(each: Dimension) -> Any:
    from skopt.space import Categorical, Integer, Real

    if each.choices:
        return Categorical(each.choices)
    prior = "log-uniform" if each.logarithmic else "uniform"
    return Integer(int(each.low), int(each.high), prior) if each.whole else Real(each.low, each.high, prior)


def _plain(value: Any) -> Value:
    """numpy's scalars as Python's own."""
    plain: Value = value.item() if isinstance(value, np.generic) else value
    return plain


def _at(space: Sequence[Dimension], shares: Sequence[float]) -> dict[str, Value]:
    return {each.key: each.value(share) for each, share in zip(space, shares, strict=True)}
