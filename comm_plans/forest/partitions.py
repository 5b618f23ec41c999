"""A quick upper bound on all_reduce that proves most regular networks without a linear program.

Split ranks into k groups. All but what starts in a group must enter it and all but what ends there must leave it, so
2 (k − 1) units pass between groups for each unit reduced: at most what the links between groups carry (the directed
form of Nash-Williams' and Tutte's bound on spanning trees).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

from comm_plans.forest.families import able_switches
from comm_plans.topology import Topology

MOST_LEVELS = 32
"""Bandwidths at which groups are looked for; networks of measured bandwidths have as many as links."""


def partition_bound(topology: Topology) -> Fraction:
    """The least bound on all_reduce's algbw in GB/s over groups that the bandwidths suggest; at least two ranks.

    Groups tried: single ranks, and for some bandwidths what hangs together by links of at least that bandwidth.
    """
    able = set(able_switches(topology, ("broadcast",))) | set(able_switches(topology, ("reduce",)))
    partitions = set(_partitions(topology.capacities, len(topology.ranks), len(topology.nodes)))
    return min(_bound(topology.capacities, groups, able) for groups in partitions if len(set(groups) - {None}) > 1)


def _bound(links: Mapping[tuple[int, int], Fraction], groups: Sequence[int | None], able: set[int]) -> Fraction:
    """`groups[node]` is a node's group, None for a switch outside of all groups."""
    between = sum(
        (b for (u, v), b in links.items() if None not in (groups[u], groups[v]) and groups[u] != groups[v]), Fraction(0)
    )
    leaving = sum((b for (u, v), b in links.items() if groups[u] is not None and groups[v] is None), Fraction(0))
    entering = sum((b for (u, v), b in links.items() if groups[u] is None and groups[v] is not None), Fraction(0))
    outside_copies = any(groups[switch] is None for switch in able)
    outside = leaving + entering if outside_copies else min(leaving, entering)
    return (between + outside) / (2 * (len(set(groups) - {None}) - 1))


def _partitions(links: Mapping[tuple[int, int], Fraction], ranks: int, nodes: int) -> Iterator[tuple[int | None, ...]]:
    yield tuple(node if node < ranks else None for node in range(nodes))
    bandwidths = sorted(set(links.values()))
    for least in bandwidths[:: 1 + len(bandwidths) // MOST_LEVELS]:
        components = _components((arc for arc, bandwidth in links.items() if bandwidth >= least), nodes)
        with_ranks = set(components[:ranks])
        yield tuple(component if component in with_ranks else None for component in components)


def _components(arcs: Iterable[tuple[int, int]], nodes: int) -> list[int]:
    """The least node of the component that each node belongs to."""
    leader = list(range(nodes))

    def find(node: int) -> int:
        while leader[node] != node:
            leader[node] = node = leader[leader[node]]
        return node

    for u, v in arcs:
        low, high = sorted((find(u), find(v)))
        leader[high] = low
    return [find(node) for node in range(nodes)]
