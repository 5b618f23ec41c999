"""What is searched: one dimension a key, each a way from 0 … 1 to values that a configuration takes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.errors import UserError
from orchestrator.sweep.notation import Range

Value = float | int | str
Values = Mapping[str, Value]


@dataclass(frozen=True)
class Dimension:
    """A key with its values: choices as written, or numbers from low to high, whole ones where `whole`."""

    key: str
    choices: tuple[Value, ...] = ()
    low: float = 0.0
    high: float = 1.0
    logarithmic: bool = False
    whole: bool = False

    def value(self, share: float) -> Value:
        """What lies at a share, 0 … 1, of the way from low to high, or from the first choice to the last."""
        if self.choices:
            return self.choices[min(int(share * len(self.choices)), len(self.choices) - 1)]
        if self.whole:
            return min(max(round(self._at(share, self.low - 0.49, self.high + 0.49)), int(self.low)), int(self.high))
        return min(max(self._at(share, self.low, self.high), self.low), self.high)

    def share(self, value: Value) -> float:
        """The inverse, for figures and searches; the middle of a choice's part."""
        if self.choices:
            return (self.choices.index(value) + 0.5) / len(self.choices)
        low, high, at = (math.log(x) if self.logarithmic else x for x in (self.low, self.high, float(value)))
        return min(max((at - low) / (high - low), 0.0), 1.0)

    @property
    def ends(self) -> tuple[Value, ...]:
        """What must be possible for all in between to be possible."""
        return self.choices or (self.value(0.0), self.value(1.0))

    def _at(self, share: float, low: float, high: float) -> float:
        return low * (high / low) ** share if self.logarithmic else low + share * (high - low)


def dimension(key: str, searched: Range | Sequence[str], configured: Any) -> Dimension:
    """A key's dimension; numbers are whole where the configured value is. Raises UserError if the ends are not."""
    if not isinstance(searched, Range):
        return Dimension(key, tuple(searched))
    whole = isinstance(configured, int) and not isinstance(configured, bool)
    if whole and not (searched.low.is_integer() and searched.high.is_integer()):
        raise UserError(f"{key} is a whole number, {configured}, and its range has other ends: write whole ones")
    if isinstance(configured, bool | str | dict | list):
        raise UserError(f"{key} is {configured!r}, which has no range: list its values, as in {key}=[a,b]")
    ranged = Dimension(key, (), searched.low, searched.high, searched.logarithmic, whole)
    if searched.count is None:
        return ranged
    ends = Dimension(key, (), searched.low, searched.high, searched.logarithmic)
    values = [float(ends.value(step / (searched.count - 1))) for step in range(searched.count)]
    return Dimension(key, tuple(dict.fromkeys(round(value) for value in values) if whole else values))


def overrides(values: Values) -> list[str]:
    """A trial's values as Hydra takes them; numbers read back as the same."""
    return [f"{key}={value!r}" if isinstance(value, float) else f"{key}={value}" for key, value in values.items()]


def value_text(value: Value) -> str:
    """Short, for people."""
    return f"{value:.3g}" if isinstance(value, float) else str(value)
