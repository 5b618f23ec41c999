"""Whether heads get the mass they are promised: now and then the exact softmax is taken, and the target put up."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

SHORT = 0.03
"""What a head may be short of the target without counter-measures: one in twenty may be, over heads and queries."""

TIGHTEN, RELAX = 0.8, 1.02

BROKEN = 0.02
"""What heads may lack on average below that, over the last audits …"""

LATELY = 1 / 8
"""… of which the last one weighs so much."""


@dataclass
class Attained:
    """Masses that one head was found to attain."""

    audits: int = 0
    total: float = 0.0
    least: float = 1.0

    @property
    def mean(self) -> float:
        return self.total / self.audits

    def add(self, mass: float) -> None:
        self.audits += 1
        self.total += mass
        self.least = min(self.least, mass)


@dataclass
class Report:
    """By layer and query head."""

    heads: dict[tuple[int, int], Attained] = field(default_factory=dict)

    def add(self, layer: int, first_head: int, masses: NDArray[np.float64]) -> None:
        for head, mass in enumerate(masses, first_head):
            self.heads.setdefault((layer, head), Attained()).add(float(mass))


class InnerTarget:
    """The target that is aimed at so that the one asked for is met.

    Short audits shrink what may be missing by a fifth, others let it grow by a fiftieth up to what was asked for.
    """

    def __init__(self, target: float) -> None:
        self._target = target
        self._tolerance = 1.0

    @property
    def value(self) -> float:
        return 1 - (1 - self._target) * self._tolerance

    def learn(self, attained: float) -> None:
        factor = TIGHTEN if attained < self._target - SHORT else RELAX
        self._tolerance = min(1.0, self._tolerance * factor)


class Trust:
    """Whether the promise is kept: on scores so peaked that no mean of keys tells of them, no higher target helps."""

    def __init__(self, target: float) -> None:
        self._least = target - SHORT
        self._lacking = 0.0

    @property
    def kept(self) -> bool:
        return self._lacking <= BROKEN

    def learn(self, attained: NDArray[np.float64]) -> None:
        """Take in the masses of one audit."""
        lacking = float(np.maximum(self._least - attained, 0).mean())
        self._lacking += LATELY * (lacking - self._lacking)
