"""Telling the nodes of a network apart by where they stand in it: colour refinement (Weisfeiler and Leman, 1968).

A colour is a 64-bit hash of what a node can see, so that colours of two networks compare without a common table, and
never depend on how nodes are numbered. Equal hashes are taken as a hint only: whoever needs certainty compares links.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
Integers = NDArray[np.int64]

CHOSEN = np.uint64(0x9E3779B97F4A7C15)
INWARDS = np.uint64(0xD1B54A32D192ED03)


@dataclass(frozen=True)
class Graph:
    """Links as rows of node indices with a hash of what each link is like; `marks` is a first colour of each node."""

    sources: Integers
    targets: Integers
    kinds: Hashes
    marks: Hashes


def mixed(values: Hashes) -> Hashes:
    """Scatter 64-bit values (the finaliser of Steele, Lea and Flood's SplitMix64, OOPSLA 2014)."""
    values = values + CHOSEN
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def refined(graph: Graph, colours: Hashes) -> tuple[Hashes, int]:
    """Let every node see its neighbours' colours until that tells no more nodes apart; also the number of rounds."""
    distinct, rounds = len(np.unique(colours)), 0
    while True:
        colours = mixed(colours) + _seen(graph, colours)
        rounds += 1
        now = len(np.unique(colours))
        if now == distinct:
            return colours, rounds
        distinct = now


def singled_out(graph: Graph, colours: Hashes, node: int) -> tuple[Hashes, int]:
    """Refine after giving one node a colour of its own."""
    colours = colours.copy()
    colours[node] = mixed(colours[node : node + 1] ^ CHOSEN)[0]
    return refined(graph, colours)


def smallest_cell(colours: Hashes) -> Integers:
    """The nodes of the smallest colour class that has several, the least colour of those; empty if there is none."""
    values, counts = np.unique(colours, return_counts=True)
    several = counts > 1
    if not several.any():
        return np.zeros(0, dtype=np.int64)
    chosen = values[several][counts[several].argmin()]
    return np.flatnonzero(colours == chosen)


def first_colours(graph: Graph) -> Hashes:
    """Colours to begin with: marks, how many nodes lie within each distance, and an order among twins.

    Refinement alone is blind to distances in regular networks. Twins are nodes with the very same neighbours: any two
    can change places, so that their order can be settled at will and need not be searched for.
    """
    colours = _with_distances(graph)
    identity = mixed(np.arange(len(graph.marks), dtype=np.uint64))
    seen = mixed(graph.marks) + _seen(graph, identity)
    colours = colours + _place_among_equals(seen)
    for kind in np.unique(graph.kinds):
        # Twins may also be joined to each other; then each counts as its own neighbour over a link of that kind.
        itself = mixed(identity ^ kind) + mixed(identity ^ kind ^ INWARDS)
        colours = colours + _place_among_equals(seen + itself)
    return mixed(colours)


def _with_distances(graph: Graph) -> Hashes:
    """Marks, changed by the number of nodes that can be reached in one hop, in two …; sets are rows of bits."""
    colours, count = graph.marks, len(graph.marks)
    order = np.argsort(graph.sources, kind="stable")
    senders, begins = np.unique(graph.sources[order], return_index=True)
    targets = graph.targets[order]
    near = np.packbits(np.eye(count, 64 * -(-count // 64), dtype=bool), axis=1).view(np.uint64)
    sizes = np.zeros(count, dtype=np.uint64)
    while len(senders):
        before, sizes = sizes, np.bitwise_count(near).sum(axis=1, dtype=np.uint64)
        if np.array_equal(before, sizes):
            break
        colours = mixed(colours + sizes)
        near[senders] |= np.bitwise_or.reduceat(near[targets], begins, axis=0)
    return colours


def _seen(graph: Graph, colours: Hashes) -> Hashes:
    total = np.zeros(len(colours), dtype=np.uint64)
    np.add.at(total, graph.sources, mixed(colours[graph.targets] ^ graph.kinds))
    np.add.at(total, graph.targets, mixed(colours[graph.sources] ^ graph.kinds ^ INWARDS))
    return total


def _place_among_equals(values: Hashes) -> Hashes:
    """0 for the first node with a value, 1 for the second with the same …"""
    order = np.argsort(values, kind="stable")
    first = np.searchsorted(values[order], values[order], side="left")
    place = np.zeros(len(values), dtype=np.uint64)
    place[order] = np.arange(len(values), dtype=np.uint64) - first.astype(np.uint64)
    return place
