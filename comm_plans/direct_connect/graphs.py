"""Regular directed graphs as wirings: N nodes with d ports in and d out, and the four ways to make larger ones.

Operations follow arXiv 2202.03356 (§ on topology expansions). Arcs have identities, since a line graph's nodes are the
arcs of its base and since parallel arcs exist. Loops are ports that are wasted; they count for the degree.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from comm_plans.errors import TopologyError
from comm_plans.topology import MOST_NODES, Link, Topology

Indices = NDArray[np.int64]
MOST_ARCS = 2**18


@dataclass(frozen=True, eq=False)
class Graph:
    """`arcs` holds a row (source, target) an arc; every node has `degree` arcs out and as many in.

    `representatives` are nodes such that some automorphism takes every other node to one of them, which makes one
    enough for a vertex-transitive graph.
    """

    nodes: int
    degree: int
    arcs: Indices
    representatives: Indices

    @cached_property
    def has_loops(self) -> bool:
        """Whether an arc leads from a node to itself."""
        return bool((self.arcs[:, 0] == self.arcs[:, 1]).any())

    @cached_property
    def is_simple(self) -> bool:
        """Whether no two arcs join the same nodes in the same direction."""
        return len(np.unique(self.arcs @ [self.nodes, 1])) == len(self.arcs)

    @cached_property
    def leaving(self) -> Indices:
        """Arc ids by source node, one row of `degree` a node."""
        return np.argsort(self.arcs[:, 0], kind="stable").reshape(self.nodes, self.degree)

    def transposed(self) -> Graph:
        """All arcs reversed, each with its id."""
        return Graph(self.nodes, self.degree, self.arcs[:, ::-1], self.representatives)

    def line(self) -> Graph:
        """L(G): a node for each arc, joined to the arcs that begin where it ends."""
        check_size(len(self.arcs), self.degree)
        following = self.leaving[self.arcs[:, 1]]
        arcs = np.stack([np.repeat(np.arange(len(self.arcs)), self.degree), following.ravel()], axis=1)
        return Graph(len(self.arcs), self.degree, arcs, self.leaving[self.representatives].ravel())

    def multiplied(self, copies: int) -> Graph:
        """G*n: `copies` of each node (copy i of u is node u·n + i), every copy of u joined to every copy of w."""
        check_size(self.nodes * copies, self.degree * copies)
        pairs = np.stack(np.meshgrid(np.arange(copies), np.arange(copies), indexing="ij"), axis=-1).reshape(-1, 2)
        arcs = (self.arcs[:, None, :] * copies + pairs[None]).reshape(-1, 2)
        return Graph(self.nodes * copies, self.degree * copies, arcs, self.representatives * copies)

    def product(self, other: Graph) -> Graph:
        """Cartesian product: node (a, b) is a·|other| + b; one coordinate moves at a time."""
        size = other.nodes
        check_size(self.nodes * size, self.degree + other.degree)
        first = (self.arcs[:, None, :] * size + np.arange(size)[None, :, None]).reshape(-1, 2)
        second = (np.arange(self.nodes)[:, None, None] * size + other.arcs[None]).reshape(-1, 2)
        standing = (self.representatives[:, None] * size + other.representatives[None]).ravel()
        return Graph(self.nodes * size, self.degree + other.degree, np.concatenate([first, second]), standing)

    def power(self, exponent: int) -> Graph:
        """Cartesian product of `exponent` times this graph."""
        return reduce(Graph.product, [self] * exponent)

    def topology(self, name: str, bandwidth: Fraction = Fraction(1)) -> Topology:
        """The wiring as a network of ranks g0, g1 …, `bandwidth` GB/s an arc; loops carry nothing and stay out."""
        ranks = tuple(f"g{node}" for node in range(self.nodes))
        links = (Link(ranks[source], ranks[target], bandwidth) for source, target in self.arcs if source != target)
        return Topology(name, ranks, (), tuple(links))


def graph_of(nodes: int, arcs: Indices, transitive: bool = False) -> Graph:
    """A regular graph from its arcs; `transitive` says that all nodes look alike."""
    return Graph(nodes, len(arcs) // nodes, arcs, np.arange(1 if transitive else nodes))


def check_size(nodes: int, degree: int) -> None:
    """Raise TopologyError for a graph that is too large to be a wiring."""
    if nodes > MOST_NODES or nodes * degree > MOST_ARCS:
        raise TopologyError(
            f"{nodes} nodes of degree {degree} are too many; up to {MOST_NODES} nodes and {MOST_ARCS} arcs are built"
        )
