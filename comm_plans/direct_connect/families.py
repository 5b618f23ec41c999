"""Base graphs by name, as an expression writes them: `K(4,4)`, `C(16,3,4)`, `Pi(4,1024)` …

Each function is a family; its parameters are the numbers in the brackets. Those marked in `BANDWIDTH_OPTIMAL` reach
(N − 1)/N by breadth-first broadcast (arXiv 2202.03356, table of base topologies).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import product
from math import gcd

import numpy as np

from comm_plans.direct_connect.graphs import Graph, check_size, graph_of
from comm_plans.errors import TopologyError


def complete(nodes: int, other: int | None = None) -> Graph:
    """K(n), every node joined to every other; K(n,n), two sides of n, each node joined to the other side."""
    if other is None:
        return _circulant(_at_least(nodes, 2, "K"), range(1, nodes))
    if other != nodes:
        raise TopologyError(
            f"K({nodes},{other}) has sides of different size and is not regular; use K({nodes},{nodes})"
        )
    return _circulant(2 * _at_least(nodes, 1, "K"), range(1, 2 * nodes, 2))


def one_way_ring(nodes: int) -> Graph:
    """U(n): each node joined to the next."""
    return _circulant(_at_least(nodes, 2, "U"), [1])


def ring(nodes: int) -> Graph:
    """B(n): each node joined to the next and the one before."""
    return _circulant(_at_least(nodes, 3, "B"), [1, nodes - 1])


def circulant(nodes: int, *jumps: int) -> Graph:
    """C(n,a,b…): node x joined to x ± a, x ± b …"""
    return directed_circulant(nodes, *jumps, *(nodes - jump for jump in jumps))


def directed_circulant(nodes: int, *jumps: int) -> Graph:
    """DiC(n,a,b…): node x joined to x + a, x + b …"""
    distinct = {jump % _at_least(nodes, 2, "DiC") for jump in jumps}
    if not jumps or len(distinct) < len(jumps) or 0 in distinct:
        raise TopologyError(f"a circulant graph of {nodes} nodes needs distinct jumps other than 0, as in C(16,3,4)")
    return _circulant(nodes, jumps)


def hypercube(dimensions: int) -> Graph:
    """Q(k): 2ᵏ nodes, those that differ in one bit joined."""
    return complete(2).power(_at_least(dimensions, 1, "Q"))


def hamming(dimensions: int, size: int) -> Graph:
    """H(k,q): qᵏ nodes, those that differ in one digit joined."""
    return complete(size).power(_at_least(dimensions, 1, "H"))


def torus(*sizes: int) -> Graph:
    """Torus(a,b…): a grid that wraps around; a dimension of 2 has one cable."""
    if not sizes:
        raise TopologyError("a torus needs sizes, such as Torus(4,4)")
    return reduce(Graph.product, (complete(2) if size == 2 else ring(size) for size in sizes))


def generalised_kautz(degree: int, nodes: int) -> Graph:
    """Pi(d,m): node x joined to −d·x − a mod m for a = 1 … d (Imase and Itoh); it may have loops."""
    check_size(_at_least(nodes, 2, "Pi"), _at_least(degree, 1, "Pi"))
    sources, labels = np.divmod(np.arange(nodes * degree), degree)
    arcs = np.stack([sources, (-degree * sources - labels - 1) % nodes], axis=1)
    # Alike are x and −1 − x, and x and x + c where (d + 1)·c = 0 mod m: half a period stands for all.
    period = nodes // gcd(degree + 1, nodes)
    return Graph(nodes, degree, arcs, np.arange((period + 1) // 2))


def de_bruijn(degree: int, length: int) -> Graph:
    """DBJ(d,n): words of n letters out of d, each joined to its shifts; d of them have loops."""
    nodes = _at_least(degree, 1, "DBJ") ** _at_least(length, 1, "DBJ")
    check_size(nodes, degree)
    sources, letters = np.divmod(np.arange(nodes * degree), degree)
    return graph_of(nodes, np.stack([sources, (degree * sources + letters) % nodes], axis=1))


def kautz(degree: int, length: int) -> Graph:
    """Kautz(d,n): the line graph of K(d+1), taken n − 1 times."""
    graph = complete(_at_least(degree, 1, "Kautz") + 1)
    for _ in range(_at_least(length, 1, "Kautz") - 1):
        graph = graph.line()
    return graph


FAMILIES: dict[str, Callable[..., Graph]] = {
    "K": complete,
    "U": one_way_ring,
    "B": ring,
    "C": circulant,
    "DiC": directed_circulant,
    "Q": hypercube,
    "H": hamming,
    "Torus": torus,
    "Pi": generalised_kautz,
    "DBJ": de_bruijn,
    "Kautz": kautz,
}


def _circulant(nodes: int, jumps: Sequence[int]) -> Graph:
    check_size(nodes, len(jumps))
    arcs = [(node, (node + jump) % nodes) for node, jump in product(range(nodes), jumps)]
    return graph_of(nodes, np.array(arcs, dtype=np.int64), transitive=True)


def _at_least(value: int, least: int, family: str) -> int:
    if value < least:
        raise TopologyError(f"{value} is too little for {family}(…); give {least} or more")
    return value
