"""How much mass lies along an order of tokens, told from few exact scores: the published fit, and strata of samples.

Both get the weights e^score of all tokens in order, and look only at those they would compute.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

WINDOWS = (0.1, 0.6)
"""Where along the order the curve is looked at …"""

WINDOW_WIDTH = 0.01
"""… each time over this share of it."""

STRATA = 8
SAMPLED = 0.04


def exact(weights: Doubles, head: int, _: np.random.Generator) -> Doubles:
    """What no system knows."""
    return weights


def fitted(weights: Doubles, head: int, _: np.random.Generator) -> Doubles:
    """Behind the head a curve a / place + b through the means of two windows, nowhere negative (arXiv 2502.12216)."""
    places = np.arange(1, len(weights) + 1)
    points = []
    for middle in WINDOWS:
        begin = int(len(weights) * (middle - WINDOW_WIDTH / 2))
        window = slice(begin, max(begin + 1, int(len(weights) * (middle + WINDOW_WIDTH / 2))))
        points.append((float(places[window].mean()), float(weights[window].mean())))
    a, b = curve(*points)
    return np.concatenate([weights[:head], np.maximum(a / places[head:] + b, 0)])


def stratified(weights: Doubles, head: int, random: np.random.Generator) -> Doubles:
    """Behind the head the mean of some tokens drawn from each of 8 strata, whose bounds grow geometrically."""
    head = max(head, 1)
    bounds = np.round(head * (len(weights) / head) ** (np.arange(STRATA + 1) / STRATA)).astype(np.int64)
    estimate = weights.copy()
    draws = max(16, int(len(weights) * SAMPLED / 4))
    for begin, end in pairwise(bounds):
        if begin < end:
            estimate[begin:end] = weights[random.integers(begin, end, draws)].mean()
    return estimate


def curve(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    """a and b of the y = a / x + b that goes through two points (x, y)."""
    (x1, y1), (x2, y2) = first, second
    a = (y1 - y2) / (1 / x1 - 1 / x2)
    return a, y2 - a / x2


def fewest_in_order(weights: Doubles, target: float) -> int:
    """How many tokens from the first on hold `target` of all."""
    held = np.cumsum(weights)
    return min(len(weights), int(np.searchsorted(held, target * held[-1])) + 1)
