"""Trees that let switches copy or add where they can (NVLS, SHARP): a datum enters such a switch once.

A switch on the way of several edges of a tree becomes a vertex of it: the first copy feeds all later ones, and what
led to the later ones is dropped. No link carries more than before. Reduce trees are the mirror image: the switch adds
what arrives and sends one sum on.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from comm_plans.forest.families import able_switches
from comm_plans.plan import Tree
from comm_plans.topology import Topology

Path = tuple[int, ...]


def use_able_switches(topology: Topology, trees: Iterable[Tree]) -> tuple[Tree, ...]:
    """The trees with every second copy into a multicast switch, and second sum out of a reducing one, left out."""
    able = {operation: set(able_switches(topology, (operation,))) for operation in ("broadcast", "reduce")}
    return tuple(_pruned(tree, len(topology.ranks), able[tree.operation]) for tree in trees)


def _pruned(tree: Tree, ranks: int, able: set[int]) -> Tree:
    if not able:
        return tree
    if tree.operation == "broadcast":
        return replace(tree, paths=out_tree(tree.root, tree.paths, ranks, able))
    return replace(tree, paths=reversed_paths(out_tree(tree.root, reversed_paths(tree.paths), ranks, able)))


def reversed_paths(paths: Iterable[Path]) -> tuple[Path, ...]:
    """An out-tree's paths as those of the in-tree with all arrows turned, children first; and back."""
    return tuple(path[::-1] for path in reversed(tuple(paths)))


def out_tree(root: int, paths: Iterable[Path], ranks: int, able: set[int]) -> tuple[Path, ...]:
    """Paths (parents first) of an out-tree in which no able switch (nodes from `ranks` on) is entered twice.

    Able switches that no rank hangs on are cut off; those with one child are passed through.
    """
    holders = {root}
    edges: list[Path] = []
    for path in paths:
        for edge in _stops(_missing(path, holders), able):
            holders.add(edge[-1])
            edges.append(edge)
    return _joined(_without_idle_leaves(edges, ranks), ranks)


def _missing(path: Path, holders: set[int]) -> Path:
    """The part of a path behind the last node that holds the data already."""
    last = max(place for place, node in enumerate(path) if node in holders)
    return path[last:]


def _stops(path: Path, able: set[int]) -> list[Path]:
    """The path cut at every able switch on its way; nothing for a path that leads nowhere new."""
    places = [0, *(place for place in range(1, len(path)) if path[place] in able or place == len(path) - 1)]
    return [path[start : end + 1] for start, end in pairwise(places)]


def _without_idle_leaves(edges: list[Path], ranks: int) -> list[Path]:
    kept: list[Path] = []
    needed: set[int] = set()
    for edge in reversed(edges):
        if edge[-1] < ranks or edge[-1] in needed:
            needed.add(edge[0])
            kept.append(edge)
    return kept[::-1]


def _joined(edges: list[Path], ranks: int) -> tuple[Path, ...]:
    """Edges with every switch that feeds one edge only made part of that edge."""
    children = Counter(edge[0] for edge in edges)
    leading: dict[int, Path] = {}
    result: list[Path] = []
    for edge in edges:
        whole = leading.get(edge[0], edge[:1])[:-1] + edge
        if edge[-1] >= ranks and children[edge[-1]] == 1:
            leading[edge[-1]] = whole
        else:
            result.append(whole)
    return tuple(result)
