"""How the cost of a wiring follows from the one it grew from, by the formulas of arXiv 2202.03356 (§ on expansions).

A formula is an upper bound on breadth-first broadcast, unless the grown schedule is no breadth-first one: a power of a
graph that is not optimal may then be better than breadth-first broadcast on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from comm_plans.direct_connect.candidates import Candidate, least_time
from comm_plans.direct_connect.expression import Copies, Power, Product, Wiring, line


@dataclass(frozen=True)
class Growth:
    """A grown wiring at its formula's cost, and the least that breadth-first broadcast on it may turn out to need.

    `exact`: breadth-first broadcast is known to cost what the formula says. `may_last`: its line graphs may be optimal.
    """

    formula: Candidate
    fewest_steps: int
    exact: bool = False
    may_last: bool = False

    @property
    def least_time(self) -> Fraction:
        """The least bandwidth time, in M/B, that a measurement may find."""
        return self.formula.bandwidth_time if self.exact else least_time(self.formula.nodes)


def grown_line(base: Candidate) -> Growth:
    """T_L + 1, T_B + 1/N; exact where every arc has its reverse."""
    steps, time = base.steps + 1, base.bandwidth_time + Fraction(1, base.nodes)
    exact = base.method == "breadth_first" and base.returns == 1
    candidate = _grown(base, line(base.wiring), base.nodes * base.degree, base.degree, steps, time, exact)
    return Growth(candidate, steps, exact, may_last=base.lines > 0)


def grown_copies(base: Candidate, copies: int) -> Growth:
    """T_L + 1, T_B + (n − 1)/(n·N); breadth-first broadcast may do without the additional step."""
    nodes = base.nodes * copies
    time = base.bandwidth_time + Fraction(copies - 1, nodes)
    wiring = _copies(base.wiring, copies)
    candidate = _grown(base, wiring, nodes, base.degree * copies, base.steps + 1, time, False, base.returns)
    return Growth(candidate, base.steps, may_last=base.is_factor and base.returns != 1)


def grown_power(base: Candidate, exponent: int) -> Growth:
    """n·T_L, T_B·N/(N − 1)·(Nⁿ − 1)/Nⁿ; exact for a base that is optimal by breadth-first broadcast."""
    nodes, degree, steps = base.nodes**exponent, base.degree * exponent, base.steps * exponent
    time = base.bandwidth_time / least_time(base.nodes) * least_time(nodes)
    wiring = Power(base.wiring, exponent)
    candidate = _grown(base, wiring, nodes, degree, steps, time, base.is_factor, base.returns)
    return Growth(candidate, steps, base.is_factor)


def grown_product(one: Candidate, other: Candidate) -> Growth:
    """The product of two that are optimal by breadth-first broadcast, and so optimal itself: the sum of their T_L."""
    nodes, degree = one.nodes * other.nodes, one.degree + other.degree
    returns = one.returns if one.returns == other.returns else None
    wiring, steps = _product(one.wiring, other.wiring), one.steps + other.steps
    candidate = _grown(one, wiring, nodes, degree, steps, least_time(nodes), True, returns)
    return Growth(candidate, steps, exact=True)


def _grown(
    base: Candidate,
    wiring: Wiring,
    nodes: int,
    degree: int,
    steps: int,
    time: Fraction,
    exact: bool,
    returns: int | None = None,
) -> Candidate:
    method = "published" if base.method == "published" else "breadth_first" if exact else "expansion"
    return Candidate(wiring, nodes, degree, steps, time, method, returns, has_loops=base.has_loops)


def _copies(wiring: Wiring, count: int) -> Wiring:
    """Copies of copies counted up."""
    return Copies(wiring.of, wiring.count * count) if isinstance(wiring, Copies) else Copies(wiring, count)


def _product(one: Wiring, other: Wiring) -> Wiring:
    """Equal factors as a power, products of products as one."""
    if one == other:
        return Power(one, 2)
    parts = [part for each in (one, other) for part in (each.factors if isinstance(each, Product) else (each,))]
    return Product(tuple(parts))
