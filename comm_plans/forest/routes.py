"""Ways from one rank to another that pass only switches, told apart by the kinds of links they load."""

from collections import deque
from collections.abc import Mapping, Sequence

from comm_plans.forest.optimum import Arc
from comm_plans.forest.paths import Path

MOST_ROUTES = 100_000
"""Ways looked at from one rank before a network counts as too entangled to list them."""

Kind = tuple[int, ...]
"""Orbits of the links on a way, sorted; an orbit that occurs twice is loaded twice."""

Routes = dict[Kind, list[Path]]
"""The ways of each kind that leave a rank, one to each rank that they lead to."""


class TooManyRoutes(Exception):  # noqa: N818 - what happened, not a fault
    """The switches leave more ways between ranks than can be listed."""


def routes_from(rank: int, ranks: int, neighbours: Sequence[Sequence[int]], orbits: Mapping[Arc, int]) -> Routes:
    """The shortest ways from `rank` to the ranks behind it, targets in cyclic order. Raises TooManyRoutes."""
    ways: dict[int, dict[Kind, Path]] = {}
    shortest = {rank: 0}
    seen: set[tuple[int, Kind]] = set()
    waiting: deque[tuple[Path, Kind]] = deque([((rank,), ())])
    while waiting:
        path, kind = waiting.popleft()
        for node in neighbours[path[-1]]:
            longer = tuple(sorted((*kind, orbits[path[-1], node])))
            far = len(longer) > shortest.setdefault(node, len(longer))
            if far or (node, longer) in seen:
                continue
            seen.add((node, longer))
            if node >= ranks:
                waiting.append(((*path, node), longer))
            else:
                ways.setdefault(node, {})[longer] = (*path, node)
        if len(seen) > MOST_ROUTES:
            raise TooManyRoutes
    return _by_kind(ways, rank, ranks)


def _by_kind(ways: Mapping[int, Mapping[Kind, Path]], start: int, ranks: int) -> Routes:
    routes: Routes = {}
    for target in sorted(ways, key=lambda target: (target - start) % ranks):
        for kind, path in ways[target].items():
            routes.setdefault(kind, []).append(path)
    return routes
