"""A numbering of a cluster's nodes that goes box by box, whatever order they were named in.

Symmetries are looked for as moves of equal blocks of ranks. Ranks that belong together are told by what keeps them
together when weak links are cut, then by the switches they hang on, so that the i-th ranks of two boxes correspond.
"""

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

from comm_plans.forest.optimum import Arc
from comm_plans.forest.symmetry import Permutation, Translations, find_translations


def translations_of(bandwidths: Mapping[Arc, Fraction], ranks: int, nodes: int) -> Translations:
    """The larger of the groups of translations in the numbering as it is and in the one that goes box by box."""
    given = find_translations(bandwidths, ranks, nodes)
    if len(given.elements) == ranks:
        return given
    order = box_by_box(bandwidths, ranks, nodes)
    place = {node: position for position, node in enumerate(order)}
    renumbered = {(place[u], place[v]): bandwidth for (u, v), bandwidth in bandwidths.items()}
    found = find_translations(renumbered, ranks, nodes)
    if len(found.elements) <= len(given.elements):
        return given

    def restored(moves: tuple[Permutation, ...]) -> tuple[Permutation, ...]:
        return tuple(tuple([order[move[place[node]]] for node in range(nodes)]) for move in moves)

    return Translations(restored(found.elements), restored(found.generators))


def box_by_box(bandwidths: Mapping[Arc, Fraction], ranks: int, nodes: int) -> list[int]:
    """All nodes, ranks first: neighbours over strong links side by side, in the order of the switches they hang on."""
    levels = [_parts(bandwidths, least, ranks, nodes) for least in sorted(set(bandwidths.values()))]
    switches: dict[int, list[int]] = {rank: [] for rank in range(ranks)}
    for u, v in bandwidths:
        if u < ranks <= v:
            switches[u].append(v)
    order = sorted(range(ranks), key=lambda rank: ([part[rank] for part in levels], sorted(switches[rank]), rank))
    return [*order, *range(ranks, nodes)]


def _parts(bandwidths: Mapping[Arc, Fraction], least: Fraction, ranks: int, nodes: int) -> list[int]:
    """For each rank the first node of what hangs together by links of at least this bandwidth; −1 for a rank alone."""
    part = list(range(nodes))

    def first(node: int) -> int:
        while part[node] != node:
            part[node] = part[part[node]]
            node = part[node]
        return node

    for (u, v), bandwidth in bandwidths.items():
        if bandwidth >= least:
            low, high = sorted((first(u), first(v)))
            part[high] = low
    parts = [first(rank) for rank in range(ranks)]
    together = Counter(parts)
    return [part if together[part] > 1 else -1 for part in parts]
