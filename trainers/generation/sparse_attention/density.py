"""The densest items first, compiled: ranked by steps of density, which costs one look at each and no sorting."""

import numpy as np
from numpy.typing import NDArray

from trainers.compiled import compiled
from trainers.generation.scoring import Floats

Mask = NDArray[np.bool_]
Steps = NDArray[np.int32]

SHIFT = 20
"""Densities are ranked in eighths of a factor of two: this many bits of a float are cut off …"""

STEPS = 256
"""… over 32 factors of two; what is below them no longer matters."""


@compiled
def densest(density: Floats, weights: Floats, need: float, chosen: Mask) -> None:
    """Choose the densest items whose weights hold `need`: whole steps, and of the last one the first of its items."""
    steps = _steps(density)
    in_step = np.zeros(STEPS + 1, np.float32)
    for item in range(len(weights)):
        in_step[steps[item]] += weights[item]
    last, held = 0, np.float32(0.0)
    while last < STEPS and held + in_step[last] < need:
        held += in_step[last]
        last += 1
    for item in range(len(weights)):
        chosen[item] = steps[item] < last
    for item in range(len(weights)):
        if steps[item] == last and held < need:
            held += weights[item]
            chosen[item] = True


@compiled
def _steps(density: Floats) -> Steps:
    """Of each item, how many steps its density lies below the highest one; the last step has no end.

    The bits of a float are its exponent and then its mantissa: cut short, they are a logarithm in straight pieces.
    """
    bits = density.view(np.int32)
    highest = bits.max()
    steps = np.empty(len(density), np.int32)
    for item in range(len(density)):
        steps[item] = min((highest - bits[item]) >> np.int32(SHIFT), np.int32(STEPS))
    return steps
