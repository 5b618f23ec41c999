"""Small linear programs whose float optimum is turned into a rational one and proved by its own multipliers.

Rates of forests are claimed to be optimal, so a solver's floats are not enough: the rational columns must satisfy every
row, the rational multipliers must price every column, and both must have the same value (weak duality).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

DENOMINATORS = (60, 1_000, 30_000, 1_000_000)
TOLERANCE = 1e-10


@dataclass(frozen=True)
class Proof:
    """A rational optimum: `columns` reach `value`, and the row `multipliers` show that nothing can exceed it."""

    value: Fraction
    columns: tuple[Fraction, ...]
    multipliers: tuple[Fraction, ...]


class LinearProgram:
    """Maximise gains · columns, columns ≥ 0, rows · columns ≤ bounds; integers throughout.

    Rows can be added after a solve; the next one then starts from the last basis. All columns come before all rows.
    """

    def __init__(self) -> None:
        self.gains: list[int] = []
        self.rows: list[dict[int, int]] = []
        self.bounds: list[int] = []
        self._solver: Any = None
        self._loaded = 0

    def add_column(self, gain: int = 0) -> int:
        """A new column; returns its index."""
        self.gains.append(gain)
        return len(self.gains) - 1

    def at_most(self, row: Mapping[int, int], bound: int) -> None:
        """Require Σ row[column] · column ≤ bound."""
        self.rows.append(dict(row))
        self.bounds.append(bound)

    def solve(self) -> bool:
        """Optimise in floats; False when the solver finds no bounded optimum."""
        self._load()
        self._solver.run()
        return str(self._solver.getModelStatus()).endswith("kOptimal")

    @property
    def columns(self) -> list[float]:
        """The columns of the last solve."""
        return [self._unit * value for value in self._solver.getSolution().col_value]

    @property
    def multipliers(self) -> list[float]:
        """The row multipliers of the last solve."""
        return [-value for value in self._solver.getSolution().row_dual]

    def _load(self) -> None:
        """Hand columns (once) and new rows to the solver, bounds relative to the largest one."""
        if self._solver is None:
            self._solver, self._unit = _quiet_solver(), max(1, *self.bounds)
            for gain in self.gains:
                self._solver.addCol(-gain, 0.0, math.inf, 0, [], [])
        for row, bound in zip(self.rows[self._loaded :], self.bounds[self._loaded :], strict=True):
            self._solver.addRow(-math.inf, bound / self._unit, len(row), list(row), list(row.values()))
        self._loaded = len(self.rows)

    def prove(self) -> Proof | None:
        """The last solve as a rational optimum, or None when no small denominators fit."""
        for denominator in DENOMINATORS:
            columns = _rational(self.columns, denominator)
            multipliers = _rational(self.multipliers, denominator)
            value = sum((gain * column for gain, column in zip(self.gains, columns, strict=True)), Fraction(0))
            bound = sum((b * y for b, y in zip(self.bounds, multipliers, strict=True)), Fraction(0))
            if value == bound and self._feasible(columns) and self._prices(multipliers):
                return Proof(value, columns, multipliers)
        return None

    def _feasible(self, columns: tuple[Fraction, ...]) -> bool:
        rows = zip(self.rows, self.bounds, strict=True)
        return min(columns) >= 0 and all(sum(a * columns[j] for j, a in row.items()) <= bound for row, bound in rows)

    def _prices(self, multipliers: tuple[Fraction, ...]) -> bool:
        prices = [Fraction(0)] * len(self.gains)
        for row, multiplier in zip(self.rows, multipliers, strict=True):
            for column, coefficient in row.items():
                prices[column] += coefficient * multiplier
        return min(multipliers) >= 0 and all(price >= gain for price, gain in zip(prices, self.gains, strict=True))


def _quiet_solver() -> Any:
    from highspy._core import _Highs  # slow to import; the public class prints a banner to stdout when it is made

    solver = _Highs()
    for option, value in (("output_flag", False), ("threads", 1)):
        solver.setOptionValue(option, value)
    for tolerance in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
        solver.setOptionValue(tolerance, TOLERANCE)
    return solver


def _rational(values: list[float], denominator: int) -> tuple[Fraction, ...]:
    return tuple(Fraction(value).limit_denominator(denominator) for value in values)
