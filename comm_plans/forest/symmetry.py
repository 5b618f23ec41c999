"""Translations of a regular network: renumberings of its nodes that leave it as it is and move every rank.

Ranks of built clusters are numbered box by box, row by row. Such a network looks the same after each block of d ranks
is rotated by e places, or mirrored; moves of nested blocks commute, and no product of them keeps a rank in place, so
that everything found for one rank holds, translated, for all ranks it is taken to (ForestColl).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from comm_plans.forest.optimum import Arc

Bandwidths = Mapping[Arc, Fraction]
Permutation = tuple[int, ...]


@dataclass(frozen=True)
class Translations:
    """A group that moves every rank: `elements` (identity first) and the `generators` they are products of."""

    elements: tuple[Permutation, ...]
    generators: tuple[Permutation, ...]

    def orbits(self, arcs: Sequence[Arc]) -> dict[Arc, int]:
        """The number of each arc's orbit: arcs that translations take to each other share one."""
        orbit: dict[Arc, int] = {}
        for start in arcs:
            if start not in orbit:
                number = len(set(orbit.values())) if not orbit else max(orbit.values()) + 1
                waiting = [start]
                orbit[start] = number
                while waiting:
                    u, v = waiting.pop()
                    for move in self.generators:
                        image = move[u], move[v]
                        if image not in orbit:
                            orbit[image] = number
                            waiting.append(image)
        return orbit


def find_translations(bandwidths: Bandwidths, ranks: int, nodes: int) -> Translations:
    """The group of nested block moves that keep every bandwidth; only the identity for an irregular network."""
    network = _Network(bandwidths, ranks, nodes)
    generators: list[Permutation] = []
    elements = [tuple(range(nodes))]
    block = 1
    while block < ranks:
        larger, order, move = _next_move(network, block, mirrors=not generators)
        if move is not None:
            generators.append(move)
            elements = [_product(power, each) for power in _powers(move, order) for each in elements]
        block = larger
    return Translations(tuple(elements), tuple(generators))


def _next_move(network: "_Network", block: int, mirrors: bool) -> tuple[int, int, Permutation | None]:
    """The block size up to which a symmetry moves blocks of size `block`, how often until they are back, and the move.

    Without a symmetry the next size to look at is the smallest multiple.
    """
    sizes = [size for size in range(block + 1, network.ranks + 1) if network.ranks % size == 0 and size % block == 0]
    for size in reversed(sizes):
        move = network.extended(_rotation(network.ranks, size, block))
        if move is not None:
            return size, size // block, move
    # A mirror keeps a rank of an odd block in place, and need not commute with rotations inside its block.
    for size in sizes if mirrors else []:
        move = network.extended(_mirror(network.ranks, size)) if size % 2 == 0 else None
        if move is not None:
            return size, 2, move
    return sizes[0], 1, None


class _Network:
    """A network prepared for the question whether a renumbering of its ranks is a symmetry."""

    def __init__(self, bandwidths: Bandwidths, ranks: int, nodes: int) -> None:
        kinds = {bandwidth: kind for kind, bandwidth in enumerate(sorted(set(bandwidths.values())))}
        self.links = {link: kinds[bandwidth] for link, bandwidth in bandwidths.items()}
        self.ranks, self.nodes = ranks, nodes
        self.at_switch: dict[int, list[tuple[int, int, int]]] = {switch: [] for switch in range(ranks, nodes)}
        for (u, v), kind in self.links.items():
            if u >= ranks:
                self.at_switch[u].append((0, kind, v))
            if v >= ranks:
                self.at_switch[v].append((1, kind, u))
        self.marks = self._marked(range(ranks))

    def extended(self, rotation: Sequence[int]) -> Permutation | None:
        """The renumbering of all nodes that moves the ranks so, or None where the network would change."""
        image = list(rotation) + [0] * (self.nodes - self.ranks)
        marks = self._marked(rotation)
        for before, after in zip(_by_mark(marks), _by_mark(self.marks), strict=True):
            if marks[before] != self.marks[after]:
                return None
            image[self.ranks + before] = self.ranks + after
        same = all(self.links.get((image[u], image[v])) == kind for (u, v), kind in self.links.items())
        return tuple(image) if same else None

    def _marked(self, rotation: Sequence[int]) -> list[int]:
        """A mark for each switch that depends on its links and on which ranks they lead to, over any distance."""
        marks = [*rotation, *([-1] * (self.nodes - self.ranks))]
        distinct = 0
        while True:
            new = [
                hash((marks[s], *sorted((way, kind, marks[v]) for way, kind, v in at)))
                for s, at in self.at_switch.items()
            ]
            marks[self.ranks :] = new
            if len(set(new)) == distinct:
                return new
            distinct = len(set(new))


def _by_mark(marks: Sequence[int]) -> list[int]:
    return sorted(range(len(marks)), key=lambda switch: (marks[switch], switch))


def _rotation(ranks: int, block: int, places: int) -> list[int]:
    return [rank - rank % block + (rank % block + places) % block for rank in range(ranks)]


def _mirror(ranks: int, block: int) -> list[int]:
    return [rank - rank % block + block - 1 - rank % block for rank in range(ranks)]


def _powers(move: Permutation, order: int) -> Iterator[Permutation]:
    power = tuple(range(len(move)))
    for _ in range(order):
        yield power
        power = _product(move, power)


def _product(second: Permutation, first: Permutation) -> Permutation:
    return tuple(second[node] for node in first)
