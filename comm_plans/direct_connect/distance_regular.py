"""Distance-regular graphs of small degree as base graphs: breadth-first broadcast is bandwidth-optimal on each.

All are undirected; incidence graphs have points and lines as nodes. Source of the constructions: Brouwer, Cohen,
Neumaier, "Distance-Regular Graphs", 1989.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations, islice, product

import numpy as np

from comm_plans.direct_connect.graphs import Graph, graph_of
from comm_plans.errors import TopologyError

MOST = 800  # nodes
PRIMES = (2, 3, 5, 7)
Vector = tuple[int, ...]


def kneser(points: int, size: int) -> Graph:
    """Kneser(n,k): k-subsets of n points, disjoint ones joined; Kneser(5,2) is Petersen, Kneser(7,3) the odd graph."""
    return _joined(combinations(range(points), size), lambda one, two: not set(one) & set(two))


def johnson(points: int, size: int) -> Graph:
    """Johnson(n,k): k-subsets of n points, joined if they share all but one; Johnson(4,2) is the octahedron."""
    return _joined(combinations(range(points), size), lambda one, two: len(set(one) & set(two)) == size - 1)


def crown(size: int) -> Graph:
    """Crown(n): K(n,n) without a perfect matching."""
    return _incidence(range(size), range(size), lambda one, two: one != two)


def projective_plane(order: int) -> Graph:
    """PG(q): points and lines of the projective plane of prime order q, incident ones joined; PG(2) is Heawood."""
    points = _projective(3, _prime(order, "PG"))
    return _incidence(points, points, lambda point, line: _dot(point, line) % order == 0)


def projective_complement(order: int) -> Graph:
    """CoPG(q): points and lines of the projective plane of prime order q, those that are not incident joined."""
    points = _projective(3, _prime(order, "CoPG"))
    return _incidence(points, points, lambda point, line: _dot(point, line) % order != 0)


def affine_plane_of_4() -> Graph:
    """AG4(): points of the affine plane of order 4 and its lines y = a·x + b (one parallel class left out)."""
    places = list(product(range(4), repeat=2))
    return _incidence(places, places, lambda point, line: point[1] == _times4(line[0], point[0]) ^ line[1])


def doubled_odd(size: int) -> Graph:
    """DoubledOdd(k): (k−1)- and k-subsets of 2k − 1 points, joined where one contains the other."""
    points = range(2 * size - 1)
    small, large = combinations(points, size - 1), combinations(points, size)
    return _incidence(small, large, lambda one, two: set(one) < set(two))


def symplectic_quadrangle(order: int) -> Graph:
    """GQ(q): points and lines of the symplectic generalised quadrangle W(q), q prime; GQ(2) is Tutte's 8-cage."""
    points = _projective(4, _prime(order, "GQ"))
    lines = {
        frozenset(point for point in points if _symplectic(point, one) % order == 0 == _symplectic(point, two) % order)
        for one, two in combinations(points, 2)
        if _symplectic(one, two) % order == 0
    }
    return _incidence(points, sorted(map(sorted, lines)), lambda point, line: point in line)


def edges(graph: Graph) -> Graph:
    """Edges(G): a node for each cable of an undirected graph, joined where cables meet in a node."""
    cables = sorted({tuple(sorted(arc)) for arc in graph.arcs.tolist()})
    return _joined(cables, lambda one, two: bool(set(one) & set(two)))


DISTANCE_REGULAR: dict[str, Callable[..., Graph]] = {
    "Kneser": kneser,
    "Johnson": johnson,
    "Crown": crown,
    "PG": projective_plane,
    "CoPG": projective_complement,
    "AG4": affine_plane_of_4,
    "DoubledOdd": doubled_odd,
    "GQ": symplectic_quadrangle,
}


def _joined(names: Iterable[object], related: Callable[..., bool]) -> Graph:
    """Undirected graph on `names` that joins related ones."""
    listed = list(islice(names, MOST + 1))
    if len(listed) > MOST:
        raise TopologyError(f"distance-regular graphs of more than {MOST} nodes are not built; choose smaller numbers")
    pairs = [(i, j) for i, one in enumerate(listed) for j, two in enumerate(listed) if i != j and related(one, two)]
    if not pairs:
        raise TopologyError(f"these numbers give a graph of {len(listed)} nodes without any cable; choose others")
    return graph_of(len(listed), np.array(pairs, dtype=np.int64))


def _incidence(points: Iterable[object], blocks: Iterable[object], related: Callable[..., bool]) -> Graph:
    """Two-sided graph that joins points to related blocks."""
    nodes = [(False, point) for point in points] + [(True, block) for block in blocks]

    def meet(one: tuple[bool, object], two: tuple[bool, object]) -> bool:
        (side, first), (other, second) = one, two
        return side != other and (related(second, first) if side else related(first, second))

    return _joined(nodes, meet)


def _projective(length: int, order: int) -> list[Vector]:
    """Points of a projective space: vectors whose first coordinate that is not 0 is 1."""
    vectors = product(range(order), repeat=length)
    return [vector for vector in vectors if next((value for value in vector if value), 0) == 1]


def _dot(one: Vector, two: Vector) -> int:
    return sum(a * b for a, b in zip(one, two, strict=True))


def _symplectic(one: Vector, two: Vector) -> int:
    return one[0] * two[1] - one[1] * two[0] + one[2] * two[3] - one[3] * two[2]


def _times4(one: int, two: int) -> int:
    """Product in the field of 4 elements: polynomials over 2 elements modulo x² + x + 1."""
    product = (one if two & 1 else 0) ^ (one << 1 if two & 2 else 0)
    return product ^ 0b111 if product & 0b100 else product


def _prime(order: int, family: str) -> int:
    if order not in PRIMES:
        raise TopologyError(f"{family}({order}) is not built; the order must be one of {', '.join(map(str, PRIMES))}")
    return order
