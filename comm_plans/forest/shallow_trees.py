"""Shallow trees of a network by counting: each kind of link may be crossed only so often, whichever link it is.

With translations a tree grown for one rank stands for all its images, and these load every link of an orbit alike. So
trees may take any links as long as the crossings of each orbit stay within what the orbit carries: no disjointness is
left to keep. A tree grows over the cheapest kind of link, near the root first, and at most `slack` hops deeper than it
must. Where kinds overflow, their price rises and trees are torn up and grown again, as routers of circuits do.

Nothing promises that the counts work out (then the general packing takes over); where they do, the trees are as good
as any that reach the same rate. Without translations every link is an orbit of its own.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from comm_plans.forest.crossings import Costs, Crossings
from comm_plans.forest.optimum import Arc
from comm_plans.forest.paths import Path, PathBatch
from comm_plans.forest.routes import routes_from
from comm_plans.forest.symmetry import Permutation, Translations

MOST_STEPS = 40_000
"""Edges that may be added (about two seconds) before a network is left to the general packing."""
MANY_KINDS = 2048
"""Kinds of ways whose costs take as long to work out as an edge takes otherwise."""
PATIENCE = 3
"""How often all trees are grown again in vain where they overflow."""
FEW, HOPEFUL = 10, 0.002
"""Crossings, and part of all crossings, that may overflow before growing again is pointless."""
LATER = 1e-9
"""Added to the cost of a kind of way for each node that joined before it was on offer: early ways stay shallow."""
MOST_EXACT = 2**50
"""Crossings that float arrays still count exactly, with room for those beyond the limit."""
SINGLES = 16
"""Numbers of trees up to which each is grown on its own."""

_Hops = dict[int, int]
_Ways = list[list[tuple[int, int, int, int]]]
"""For each kind a heap of (depth, order of joining, rank, position among the rank's ways of this kind)."""


@dataclass(frozen=True)
class _Tree:
    root: int
    multiplicity: int
    paths: tuple[Path, ...]
    kinds: tuple[int, ...]


class ShallowTrees:
    """A network whose ways, translations and distances have been worked out, ready to try numbers of trees."""

    def __init__(self, links: Iterable[Arc], ranks: int, nodes: int, translations: Translations) -> None:
        """Raises TooManyRoutes where switches leave too many ways between ranks."""
        links = list(links)
        self._ranks, self._moves = ranks, translations.elements
        self._orbits = translations.orbits(links)
        self._home: dict[int, tuple[int, Permutation]] = {}
        for rank in range(ranks):
            if rank not in self._home:
                self._home.update({move[rank]: (rank, move) for move in self._moves})
        neighbours: list[list[int]] = [[] for _ in range(nodes)]
        for u, v in links:
            neighbours[u].append(v)
        self._roots = sorted({root for root, _ in self._home.values()})
        routes = {root: routes_from(root, ranks, neighbours, self._orbits) for root in self._roots}
        self._kinds = sorted({kind for ways in routes.values() for kind in ways})
        place = {kind: number for number, kind in enumerate(self._kinds)}
        self._routes = {root: {place[kind]: paths for kind, paths in ways.items()} for root, ways in routes.items()}
        self._distances = {root: self._hops_from(root) for root in self._roots}
        self._eccentricity = max(max(distance.values()) for distance in self._distances.values())

    def grow(self, capacities: Mapping[Arc, int], trees: int) -> list[PathBatch] | None:
        """`trees` trees for every rank that cross no link more often than its capacity; None if none were found."""
        limits = self._limits(capacities)
        if max(limits) >= MOST_EXACT:
            return None
        sizes = _batch_sizes(trees)
        once = len(sizes) * len(self._roots) * (self._ranks - 1) * (1 + len(self._kinds) // MANY_KINDS)
        passes = MOST_STEPS // once
        for slack in self._slacks():
            if passes <= 0:
                break
            crossings = Crossings(limits, self._kinds)
            grown, taken = self._grow_all(crossings, sizes, slack, passes)
            if grown:
                return [batch for tree in grown for batch in self._images(tree)]
            passes -= taken
        return None

    def _grow_all(self, crossings: Crossings, sizes: list[int], slack: int, most: int) -> tuple[list[_Tree], int]:
        """Trees of each root in batches of these sizes, none where they overflow, and how often all were grown."""
        grown = [self._grow(root, size, slack, crossings) for size in sizes for root in self._roots]
        hopeful = FEW + HOPEFUL * sum(
            tree.multiplicity * len(self._kinds[kind]) for tree in grown for kind in tree.kinds
        )
        overflows = [crossings.overflow()]
        while overflows[-1] > 0 and min(overflows) <= hopeful and len(overflows) < most and _improves(overflows):
            crossings.raise_prices()
            self._grow_again(grown, slack, crossings)
            overflows.append(crossings.overflow())
        return ([] if overflows[-1] else grown), len(overflows)

    def _grow_again(self, grown: list[_Tree], slack: int, crossings: Crossings) -> None:
        """Tear up one batch after the other and grow it at today's prices, until nothing overflows."""
        for place, tree in enumerate(grown):
            for kind in tree.kinds:
                crossings.add(kind, -tree.multiplicity)
            grown[place] = self._grow(tree.root, tree.multiplicity, slack, crossings)
            if not crossings.overflow():
                return

    def _grow(self, root: int, multiplicity: int, slack: int, crossings: Crossings) -> _Tree:
        """One spanning tree over the cheapest ways, counted in `crossings`."""
        depth, paths, kinds = {root: 0}, list[Path](), list[int]()
        ways: _Ways = [[] for _ in self._kinds]
        closed = np.full(len(ways), np.inf)
        newest = root
        while len(depth) < self._ranks:
            for kind in self._routes[self._home[newest][0]]:
                heappush(ways[kind], (depth[newest], len(depth), newest, 0))
                closed[kind] = min(closed[kind], LATER * len(depth))
            costs = crossings.costs(multiplicity)
            kind, path = self._cheapest(costs, closed, ways, depth, self._distances[root], slack)
            newest = path[-1]
            depth[newest] = depth[path[0]] + 1
            crossings.add(kind, multiplicity)
            paths.append(path)
            kinds.append(kind)
        return _Tree(root, multiplicity, tuple(paths), tuple(kinds))

    def _cheapest(
        self, costs: Costs, closed: Costs, ways: _Ways, depth: _Hops, distance: _Hops, slack: int
    ) -> tuple[int, Path]:
        """A way to a rank not reached yet, of the cheapest kind, from the rank nearest the root; closes empty kinds."""
        while True:
            kind = int((costs + closed).argmin())
            path = self._next_way(kind, ways[kind], depth, distance, slack)
            if path is not None:
                return kind, path
            closed[kind] = np.inf

    def _next_way(
        self, kind: int, ways: list[tuple[int, int, int, int]], depth: _Hops, distance: _Hops, slack: int
    ) -> Path | None:
        while ways:
            level, joined, source, position = heappop(ways)
            home, move = self._home[source]
            paths = self._routes[home][kind]
            for place in range(position, len(paths)):
                target = move[paths[place][-1]]
                if target not in depth and level < distance[target] + slack:
                    heappush(ways, (level, joined, source, place))
                    return tuple([move[node] for node in paths[place]])
        return None

    def _limits(self, capacities: Mapping[Arc, int]) -> list[int]:
        """Crossings that the trees of the roots may make of each orbit: s links of c trees each, for all images."""
        carried = [0] * (max(self._orbits.values()) + 1)
        for link, orbit in self._orbits.items():
            carried[orbit] += capacities.get(link, 0)
        return [total // len(self._moves) for total in carried]

    def _slacks(self) -> list[int]:
        """Hops deeper than need be: any number up to twice the depth, then coarser steps up to any tree."""
        fine = range(max(self._eccentricity, 4) + 1)
        return [*fine, *(step for step in (6, 8, 12, 16, 24) if fine.stop <= step < self._ranks)]

    def _hops_from(self, root: int) -> _Hops:
        distance, level = {root: 0}, [root]
        while level:
            following = []
            for rank in level:
                home, move = self._home[rank]
                for target in (move[path[-1]] for paths in self._routes[home].values() for path in paths):
                    if target not in distance:
                        distance[target] = distance[rank] + 1
                        following.append(target)
            level = following
        return distance

    def _images(self, tree: _Tree) -> list[PathBatch]:
        return [
            PathBatch(
                move[tree.root], tree.multiplicity, tuple([tuple([move[n] for n in path]) for path in tree.paths])
            )
            for move in self._moves
        ]


def _improves(overflows: list[int]) -> bool:
    """Whether one of the latest overflows is less than all before."""
    return len(overflows) <= PATIENCE or min(overflows[-PATIENCE:]) < min(overflows[:-PATIENCE])


def _batch_sizes(trees: int) -> list[int]:
    """The trees of one root in batches: large ones first, while others can still make up for their bulk."""
    sizes = []
    while trees > SINGLES:
        sizes.append(-(-trees // SINGLES) + 1)
        trees -= sizes[-1]
    return sizes + [1] * trees
