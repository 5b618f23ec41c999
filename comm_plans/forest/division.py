"""The largest rate at which families of trees fit a network together, and each family's part of every link.

A linear program over cuts (the all_reduce program of ForestColl, arXiv 2402.06787, with the flows replaced by the
cuts that they are dual to):

    maximise Σ roots
    links:    Σ over families of what they put on the link ≤ its bandwidth
    cuts:     for every family and every node set S that misses one of its terminals: arcs leaving S ≥ roots inside S
    switches: a plain switch sends no more than it receives
    roots:    families of different operations have the same rate at every root, or all follow given weights

There are exponentially many cuts, so they are added when a max-flow finds them violated. The last program is proved in
exact arithmetic and its solution checked by integer flows, hence the rate is the optimum and not near it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

from comm_plans.errors import TooFine
from comm_plans.forest.families import Arc, Family
from comm_plans.forest.linear_program import LinearProgram, Proof
from comm_plans.max_flow import Network

FINE = 2**36
"""Flows between solves count float columns in units of the largest one divided by this."""
SLACK = 64
"""Units a cut must lack, for every arc, before it counts as violated between solves."""
MOST_ROUNDS = 200
"""Solves before a program counts as too hard; a dozen are usual."""
MOST_COLUMNS = 4000
"""Columns of the largest program: a network of 512 ranks and 2000 links takes it some 20 s."""


@dataclass(frozen=True)
class Part:
    """What one family gets: rate of the trees at each root and bandwidth on each arc, in GB/s."""

    family: Family
    roots: dict[int, Fraction]
    capacities: dict[Arc, Fraction]


@dataclass(frozen=True)
class Division:
    """The optimum `rate` in GB/s, the parts that reach it, and the node set whose cut weighs most in its proof."""

    rate: Fraction
    parts: tuple[Part, ...]
    near_side: tuple[int, ...]


def divide(
    capacities: Mapping[Arc, Fraction], nodes: int, families: Sequence[Family], weights: Sequence[int] | None = None
) -> Division | None:
    """Largest joint rate of `families` on links of `capacities` (GB/s) between `nodes` nodes.

    With `weights` (one per node) the rate at root v is weights[v] times a common factor, otherwise roots are free.
    None where the program is too large, or its optimum has no small denominators.
    """
    if sum(map(columns_of, families)) > MOST_COLUMNS:
        return None
    try:
        return _Program(capacities, nodes, families, weights).optimum()
    except TooFine:
        return None


def columns_of(family: Family) -> int:
    """Columns that a family adds to the linear program, of which there may be `MOST_COLUMNS`."""
    return len(family.arcs) + len(family.roots)


class _Program:
    def __init__(
        self,
        capacities: Mapping[Arc, Fraction],
        nodes: int,
        families: Sequence[Family],
        weights: Sequence[int] | None,
    ) -> None:
        self.nodes, self.families = nodes, families
        self.unit = Fraction(
            gcd(*(bandwidth.numerator for bandwidth in capacities.values())),
            lcm(*(bandwidth.denominator for bandwidth in capacities.values())),
        )
        self.program = LinearProgram()
        self.arcs = [{arc: self.program.add_column() for arc in family.arcs} for family in families]
        self.roots = [self._add_roots(family, weights) for family in families]
        self.cuts: dict[int, tuple[int, ...]] = {}
        self._share_links({link: int(bandwidth / self.unit) for link, bandwidth in capacities.items()})
        self._balance_switches()
        if weights is None and len({family.operations for family in families}) > 1:
            self._match_roots()
        for index in range(len(families)):
            for near in self._first_cuts(families[index]):
                self._add_cut(index, near)

    def optimum(self) -> Division | None:
        """Solve, cut off, and repeat until the proved optimum passes the exact flow test."""
        for _ in range(MOST_ROUNDS):
            if not self.program.solve():
                return None
            if self._cut_off(self.program.columns, FINE / max(1.0, *self.program.columns), exact=False):
                continue
            proof = self.program.prove()
            if proof is None:
                return None
            if not self._cut_off(proof.columns, lcm(*(value.denominator for value in proof.columns)), exact=True):
                return self._division(proof)
        return None

    def _add_roots(self, family: Family, weights: Sequence[int] | None) -> dict[int, tuple[int, int]]:
        """For each root the column that rules its rate, and the factor between them."""
        gain = int(family.operations == self.families[0].operations)
        if weights is None:
            return {root: (self.program.add_column(gain), 1) for root in family.roots}
        column = self.program.add_column(gain * sum(weights))
        return {root: (column, weights[root]) for root in family.roots if weights[root]}

    def _share_links(self, capacities: Mapping[Arc, int]) -> None:
        loads: dict[Arc, dict[int, int]] = {link: {} for link in capacities}
        for family, columns in zip(self.families, self.arcs, strict=True):
            for arc, column in columns.items():
                for link in family.links(arc):
                    loads[link][column] = 1
        for link, load in loads.items():
            self.program.at_most(load, capacities[link])

    def _balance_switches(self) -> None:
        for family, columns in zip(self.families, self.arcs, strict=True):
            for switch in family.plain:
                out = {column: 1 for (tail, _), column in columns.items() if tail == switch}
                into = {column: -1 for (_, head), column in columns.items() if head == switch}
                self.program.at_most(out | into, 0)

    def _match_roots(self) -> None:
        """Where broadcast and reduce trees are of different families, let them agree at every root."""
        for root in sorted({root for family in self.families for root in family.roots}):
            row: dict[int, int] = {}
            for family, columns in zip(self.families, self.roots, strict=True):
                if root in columns:
                    row[columns[root][0]] = 1 if family.operations == self.families[0].operations else -1
            self.program.at_most(row, 0)
            self.program.at_most({column: -sign for column, sign in row.items()}, 0)

    def _first_cuts(self, family: Family) -> Iterator[tuple[int, ...]]:
        everything = range(self.nodes)
        yield from (tuple(node for node in everything if node != terminal) for terminal in family.terminals)
        yield from ((root,) for root in family.roots)

    def _add_cut(self, index: int, near: tuple[int, ...]) -> None:
        inside = set(near)
        row = {column: -1 for (tail, head), column in self.arcs[index].items() if tail in inside and head not in inside}
        for root, (column, factor) in self.roots[index].items():
            if root in inside:
                row[column] = row.get(column, 0) + factor
        self.cuts[len(self.program.rows)] = near
        self.program.at_most(row, 0)

    def _cut_off(self, columns: Sequence[float] | Sequence[Fraction], scale: float, *, exact: bool) -> bool:
        """Add every cut that `columns` violate; tell whether there was one."""
        found = False
        for index, family in enumerate(self.families):
            for near in sorted(set(self._violated(index, family, [int(value * scale) for value in columns], exact))):
                self._add_cut(index, near)
                found = True
        return found

    def _violated(self, index: int, family: Family, columns: Sequence[int], exact: bool) -> Iterator[tuple[int, ...]]:
        """Sending sides of violated minimum cuts, for each terminal the smallest side and the largest."""
        origin, everything = self.nodes, set(range(self.nodes))
        rates = {root: factor * columns[column] for root, (column, factor) in self.roots[index].items()}
        arcs = {arc: columns[column] for arc, column in self.arcs[index].items()}
        arcs |= {(origin, root): rate for root, rate in rates.items()}
        forward, backward = _network(arcs, origin + 1), _network({arc[::-1]: arcs[arc] for arc in arcs}, origin + 1)
        need = sum(rates.values()) - (0 if exact else SLACK * len(family.arcs))
        for terminal in family.terminals:
            if need > 0 and forward.least_excess([origin], [terminal], need, 0) < 0:
                yield tuple(sorted(everything & set(forward.near_side())))
                backward.least_excess([terminal], [origin], need, 0)
                yield tuple(sorted(everything - set(backward.near_side())))

    def _division(self, proof: Proof) -> Division:
        parts = [self._part(index, proof) for index in range(len(self.families))]
        heaviest = max(self.cuts, key=lambda row: proof.multipliers[row])
        used = tuple(part for part in parts if part.roots)
        return Division(self.unit * proof.value, used, self.cuts[heaviest])

    def _part(self, index: int, proof: Proof) -> Part:
        roots = {root: factor * proof.columns[column] for root, (column, factor) in self.roots[index].items()}
        arcs = {arc: proof.columns[column] for arc, column in self.arcs[index].items()}
        return Part(
            self.families[index],
            {root: self.unit * rate for root, rate in roots.items() if rate},
            {arc: self.unit * amount for arc, amount in arcs.items() if amount},
        )


def _network(arcs: Mapping[Arc, int], nodes: int) -> Network:
    if sum(arcs.values()) >= 2**62:
        raise TooFine("the rates need more than 62 bits together")
    network = Network(nodes)
    for (tail, head), capacity in arcs.items():
        network.set_capacity(tail, head, capacity)
    return network
