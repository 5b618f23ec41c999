"""Which networks are alike: a key that forgets names and numbers, and the mapping between two that share it.

A plan depends on which nodes are ranks, what switches can do, and how fast links are. Names, hosts, latencies, the
numbering of everything, and noise in bandwidths (`noise`) do not change the key. The key comes from colours, level by
level of a bounded search tree; the mapping is found by a search that colours guide and is checked link by link, so
that two different networks that should happen to share a key are still told apart before anything is reused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np

from comm_plans.colours import Graph, Hashes, Integers, first_colours, refined, singled_out, smallest_cell
from comm_plans.noise import rungs
from comm_plans.topology import Topology

# Work is counted in links seen in rounds of refinement; on a small network a round costs as much as ROUND links.
KEY_WORK = 2**19
SEARCH_WORK = 2**23
ROUND = 1000


def canonical_key(topology: Topology, marks: Sequence[str] = ()) -> str:
    """32 hexadecimal digits that all alike networks share. `marks` sets ranks apart (a root, unequal shards)."""
    graph = _graph(topology, marks)
    digest = hashlib.sha256(f"{len(topology.ranks)} {len(topology.nodes)} {len(topology.links)}".encode())
    level = [refined(graph, first_colours(graph))[0]]
    budget = KEY_WORK // (len(topology.links) + ROUND)
    while level:
        digest.update(b"".join(sorted(_summary(colours) for colours in level)))
        level, budget = _next_level(graph, level, budget)
    return digest.hexdigest()[:32]


def _next_level(graph: Graph, level: list[Hashes], budget: int) -> tuple[list[Hashes], int]:
    """Single out each node of the smallest cell; nothing if that takes more rounds than are left.

    The sum of rounds does not depend on numbering, so that alike networks end at the same level.
    """
    following = []
    for colours in level:
        for node in smallest_cell(colours):
            refinement, rounds = singled_out(graph, colours, int(node))
            following.append(refinement)
            budget -= rounds
            if budget < 0:
                return [], 0
    return following, budget


def mapping_between(
    one: Topology, other: Topology, marks: Sequence[str] = (), other_marks: Sequence[str] = ()
) -> tuple[int, ...] | None:
    """For each node of `one` the node of `other` that plays its part, or None if the two are not found alike.

    If the networks can be matched with equal bandwidths they are; only otherwise does noise come in.
    """
    if (len(one.ranks), len(one.nodes), len(one.links)) != (len(other.ranks), len(other.nodes), len(other.links)):
        return None
    exactly = _matched(_graph(one, marks, exact=True), _graph(other, other_marks, exact=True))
    return exactly or _matched(_graph(one, marks), _graph(other, other_marks))


def _matched(here: Graph, there: Graph) -> tuple[int, ...] | None:
    for ours, theirs in _matched_colours(here, there):
        mapping = np.empty(len(ours), dtype=np.int64)
        mapping[np.argsort(ours)] = np.argsort(theirs)
        if _same_links(here, there, mapping):
            return tuple(mapping.tolist())
    return None


def _matched_colours(here: Graph, there: Graph) -> Iterator[tuple[Hashes, Hashes]]:
    """Colourings that tell all nodes apart and agree on both sides: single out one node here, try each there."""
    start = refined(here, first_colours(here))[0], refined(there, first_colours(there))[0]
    branches = [iter([start])]
    for _ in range(SEARCH_WORK // (len(here.kinds) + ROUND)):
        if not branches:
            return
        pair = next(branches[-1], None)
        if pair is None:
            branches.pop()
        elif np.array_equal(np.sort(pair[0]), np.sort(pair[1])):
            if not len(smallest_cell(pair[0])):
                yield pair
            branches.append(_branch(here, there, *pair))


def _branch(here: Graph, there: Graph, ours: Hashes, theirs: Hashes) -> Iterator[tuple[Hashes, Hashes]]:
    cell = smallest_cell(ours)
    if len(cell):
        left, _ = singled_out(here, ours, int(cell[0]))
        for node in smallest_cell(theirs):
            yield left, singled_out(there, theirs, int(node))[0]


def _same_links(here: Graph, there: Graph, mapping: Integers) -> bool:
    """Whether the mapping takes every link to one of the same kind, and every node to one of the same mark."""
    count = len(mapping)
    ours = mapping[here.sources] * count + mapping[here.targets]
    theirs = there.sources * count + there.targets
    left, right = np.argsort(ours), np.argsort(theirs)
    links = np.array_equal(ours[left], theirs[right]) and np.array_equal(here.kinds[left], there.kinds[right])
    return links and np.array_equal(here.marks, there.marks[mapping])


def _graph(topology: Topology, marks: Sequence[str], exact: bool = False) -> Graph:
    names = list(topology.capacities.values())
    if not exact:
        names = rungs(np.array([float(bandwidth) for bandwidth in names]))
    hashes = {name: _hash(f"link {name}") for name in set(names)}
    ends = np.array(list(topology.capacities), dtype=np.int64).reshape(-1, 2)
    nodes = [f"rank {mark}" for mark in marks] or ["rank "] * len(topology.ranks)
    nodes += [f"switch {switch.multicast} {switch.reduces}" for switch in topology.switches]
    return Graph(
        sources=ends[:, 0],
        targets=ends[:, 1],
        kinds=np.array([hashes[name] for name in names], dtype=np.uint64),
        marks=np.array([_hash(node) for node in nodes], dtype=np.uint64),
    )


def _summary(colours: Hashes) -> bytes:
    return hashlib.sha256(np.sort(colours).tobytes()).digest()


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
