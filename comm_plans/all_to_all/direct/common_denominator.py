"""Floats of a solver's vertex as integers over one small denominator, where there is one."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

import numpy as np

from comm_plans.all_to_all.direct.flow_problem import Floats, Indices

DENOMINATORS = 20_000  # of each value
NOISE = 2e-11  # any value is within 2.5e-9 of some such fraction


def common_fractions(values: Floats, most: int) -> tuple[Indices | None, int]:
    """Values in [0, 1] as integers over a common denominator up to `most`; None where they are no such fractions."""
    distinct, place = np.unique(np.round(values, 12), return_inverse=True)
    simple = [Fraction(value).limit_denominator(DENOMINATORS) for value in distinct.tolist()]
    if any(abs(float(near) - value) > NOISE for near, value in zip(simple, distinct.tolist(), strict=True)):
        return None, 0
    common = lcm(*(each.denominator for each in simple))
    if common > most:
        return None, 0
    return np.array([int(each * common) for each in simple], dtype=np.int64)[place], common
