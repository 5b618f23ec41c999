"""Finds the wirings of N nodes and degree d that no known one beats in steps and bandwidth time.

Every larger wiring comes from smaller ones by an operation that multiplies their number of nodes, so that the best for
N follow from the best for the divisors of N (arXiv 2202.03356, § on the topology finder). With `real` costs the
breadth-first cost of each grown graph is measured where it may beat the operation's formula.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt

from comm_plans.direct_connect.candidates import Candidate, Front, measured
from comm_plans.direct_connect.catalogue import all_bases, kautz_like, published_bases
from comm_plans.direct_connect.growth import Growth, grown_copies, grown_line, grown_power, grown_product


class Finder:
    """Remembers what it found, so that the frontiers of many sizes cost little more than those of the largest ones."""

    def __init__(self, real: bool = True) -> None:
        self.real = real
        self.fronts: dict[tuple[int, int], Front] = {}

    def frontier(self, nodes: int, degree: int) -> list[Candidate]:
        """The wirings that no other known one beats, by number of steps.

        Generalised Kautz graphs come in only here: their line graphs are of their own kind, and products need optimal
        factors.
        """
        front = Front(list(self.front(nodes, degree).best))
        if degree > 1:
            front.add(kautz_like(nodes, degree))
        for exponent in _divisors(degree)[1:-1]:
            if root := _root(nodes, exponent):
                self._weigh(front, grown_power(kautz_like(root, degree // exponent), exponent))
        return front.best

    def front(self, nodes: int, degree: int) -> Front:
        """What others grow from: the frontier without generalised Kautz graphs, and what may gain more by growing."""
        if (nodes, degree) not in self.fronts:
            front = self.fronts[nodes, degree] = Front()
            for base in all_bases(nodes, degree) if self.real else published_bases(nodes, degree):
                front.add(base)
            for growth in sorted(self._growths(nodes, degree), key=lambda growth: growth.fewest_steps):
                self._weigh(front, growth)
        return self.fronts[nodes, degree]

    def _growths(self, nodes: int, degree: int) -> Iterator[Growth]:
        if degree > 1 and nodes % degree == 0:
            yield from map(grown_line, self.front(nodes // degree, degree))
        for count in _divisors(degree)[1:]:
            if nodes % count == 0:
                smaller = self.front(nodes // count, degree // count)
                yield from (grown_copies(base, count) for base in smaller if not base.has_loops)
            if root := _root(nodes, count):
                yield from (grown_power(base, count) for base in self.front(root, degree // count))
        for size in _divisors(nodes):
            if 1 < size <= isqrt(nodes):
                for ports in range(1, degree):
                    yield from self._products(size, ports, nodes // size, degree - ports)

    def _products(self, size: int, ports: int, other_size: int, other_ports: int) -> Iterator[Growth]:
        ones = [base for base in self.front(size, ports) if base.is_factor]
        others = [base for base in self.front(other_size, other_ports) if base.is_factor] if ones else []
        yield from (grown_product(one, other) for one in ones for other in others)

    def _weigh(self, front: Front, growth: Growth) -> None:
        """Take the grown wiring in: at its real cost, and at its formula's where breadth-first broadcast costs more."""
        formula = growth.formula
        if not self.real:
            front.add(formula)
        elif growth.exact:
            front.add(formula.with_lines())
        elif growth.may_last or front.has_room(growth.fewest_steps, growth.least_time):
            real = measured(formula.wiring)
            front.add(real.with_lines())
            if not real.beats(formula.steps, formula.bandwidth_time):
                front.add(formula)


def _divisors(number: int) -> list[int]:
    return [divisor for divisor in range(1, number + 1) if number % divisor == 0]


def _root(number: int, exponent: int) -> int | None:
    """The whole root above 1, if there is one."""
    root = round(number ** (1 / exponent))
    return root if exponent > 1 and root > 1 and root**exponent == number else None
