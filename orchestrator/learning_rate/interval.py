"""The interval of rates that is searched, and how it moves when a choice shows that it lies wrong."""

import math
from dataclasses import dataclass

WIDTH = 1000.0  # highest rate over the lowest, where only one of them is known
EXTENSION = 3.0
NEAR = 0.02  # share of the interval, in log rate, within which a rate lies on its bound


@dataclass(frozen=True)
class Interval:
    """Rates from `low` to `high`."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """The geometric mean."""
        return math.sqrt(self.low) * math.sqrt(self.high)

    def bound_of(self, rate: float) -> str | None:
        """ "low" or "high" where the rate lies on that bound."""
        position = math.log(rate / self.low) / math.log(self.high / self.low)
        if position < NEAR:
            return "low"
        return "high" if position > 1 - NEAR else None

    def extended(self, bound: str) -> "Interval":
        """Three times further on that side."""
        if bound == "low":
            return Interval(self.low / EXTENSION, self.high)
        return Interval(self.low, self.high * EXTENSION)

    def below(self) -> "Interval":
        """Moved down by half its width in log rate."""
        half = self.middle / self.low
        return Interval(self.low / half, self.high / half)

    def up_to(self, high: float) -> "Interval":
        """With another upper end; as wide as usual where that lies below the lower one."""
        return Interval(self.low if self.low < high else high / WIDTH, high)
