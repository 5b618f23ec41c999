"""Small linear programs whose float optimum is turned into a rational one and proved by its own multipliers.

Rates of forests are claimed to be optimal, so a solver's floats are not enough: the rational columns must satisfy every
row, the rational multipliers must price every column, and both must have the same value (weak duality).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy.sparse import csr_array

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

    Rows can be added after a solve.
    """

    def __init__(self) -> None:
        self.gains: list[int] = []
        self.rows: list[dict[int, int]] = []
        self.bounds: list[int] = []
        self.columns: list[float] = []
        self.multipliers: list[float] = []

    def add_column(self, gain: int = 0) -> int:
        """A new column; returns its index."""
        self.gains.append(gain)
        return len(self.gains) - 1

    def at_most(self, row: Mapping[int, int], bound: int) -> None:
        """Require Σ row[column] · column ≤ bound."""
        self.rows.append(dict(row))
        self.bounds.append(bound)

    def solve(self) -> bool:
        """Optimise in floats and keep columns and row multipliers; False when the solver finds no bounded optimum."""
        from scipy.optimize import linprog  # slow to import, and most networks need no program

        unit = max(1, *self.bounds)
        answer = linprog(
            -np.array(self.gains),
            A_ub=self._matrix(),
            b_ub=np.array(self.bounds) / unit,
            method="highs-ds",
            options={"primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE},
        )
        if answer.status == 0:
            self.columns = [unit * value for value in answer.x.tolist()]
            self.multipliers = [-value for value in answer.ineqlin.marginals.tolist()]
        return bool(answer.status == 0)

    def _matrix(self) -> "csr_array":
        from scipy.sparse import csr_array

        starts = np.cumsum([0, *map(len, self.rows)])
        columns = np.fromiter((column for row in self.rows for column in row), np.int32)
        values = np.fromiter((value for row in self.rows for value in row.values()), np.float64)
        return csr_array((values, columns, starts), shape=(len(self.rows), len(self.gains)))

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


def _rational(values: list[float], denominator: int) -> tuple[Fraction, ...]:
    return tuple(Fraction(value).limit_denominator(denominator) for value in values)
