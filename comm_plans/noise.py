"""Bandwidths that differ only by measurement noise are one: the grid on which networks are compared.

Within one network, values whose spread is below 4 % (each within 2 % of the middle) form a class, and the class is
named by the rung nearest to its median on a ladder of round numbers, 2 to 5 % apart. Nominal rates such as 12.5, 25,
50, 300 or 450 GB/s stand on a rung and not between two, so that noise around them seldom changes the name. Where it
does, a plan is solved anew; the name of a class never decides what a plan is worth.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

NOISE = 0.02
# Distance of the rungs from 10, from 20 and from 50 on; every decade repeats them.
LADDER = ((10, Fraction(1, 2)), (20, Fraction(1)), (50, Fraction(5, 2)))


def rungs(bandwidths: NDArray[np.float64]) -> list[Fraction]:
    """For each bandwidth (GB/s) the rung that stands for it; the same value twice weighs twice in the medians."""
    order = np.argsort(bandwidths, kind="stable")
    values = bandwidths[order]
    result = [Fraction(0)] * len(values)
    start = 0
    while start < len(values):
        end = int(np.searchsorted(values, values[start] * (1 + 2 * NOISE)))
        name = rung(Fraction(float(values[(start + end) // 2])))
        for place in order[start:end]:
            result[place] = name
        start = end
    return result


def rung(value: Fraction) -> Fraction:
    """The nearest rung of the ladder; `value` is above zero."""
    decade = Fraction(1)
    while value / decade >= 100:
        decade *= 10
    while value / decade < 10:
        decade /= 10
    mantissa = value / decade
    step = next(step for start, step in reversed(LADDER) if mantissa >= start)
    return round(mantissa / step) * step * decade


def within_noise(one: Fraction, other: Fraction) -> bool:
    """Whether two measurements may be of the same link."""
    return abs(one - other) <= 2 * Fraction(str(NOISE)) * max(one, other)
