"""Where nodes go in the picture of a network: ranks by host, a host's switches below, switches between hosts above.

Where ranks are joined by switches alone they stand in a row and switches are bars across the ranks they serve, so that
links are upright; where ranks are joined directly, each host is a circle or a grid, whichever has the shorter links.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import cos, dist, pi, sin

from comm_plans.exports.drawing import Point
from comm_plans.topology import Topology

HOST_GAP = 54
BAR = 11  # half the height of a switch


@dataclass
class Spot:
    """Centre and half sizes of a node's symbol."""

    x: float
    y: float
    half_width: float
    half_height: float

    @property
    def is_bar(self) -> bool:
        """Whether this is a switch; ranks are round."""
        return self.half_width > self.half_height


@dataclass(frozen=True)
class Layout:
    """Spots by node index, frames of hosts as (name, corner, size), and the size of it all."""

    spots: dict[int, Spot]
    frames: list[tuple[str, Point, Point]]
    width: float
    height: float
    spacing: float


def laid_out(topology: Topology, spacing: float, row: float) -> Layout:
    """Positions with ranks `spacing` apart and switches `row` away from what they serve."""
    ranks = len(topology.ranks)
    neighbours = _neighbours(topology)
    groups = _groups(topology)
    inner = _inner_switches(topology, neighbours, groups)
    direct = any(max(ends) < ranks for ends in topology.capacities)
    spots: dict[int, Spot] = {}
    left = 0.0
    for members in groups.values():
        place = _compact if direct else _row
        left = place(spots, members, neighbours, left, spacing) + HOST_GAP
    lonely = {switch for switch in inner if all(node < ranks or node in inner for node in neighbours[switch])}
    own = {name: [switch for switch, home in inner.items() if home == name] for name in groups}
    for name, members in groups.items():
        low = [switch for switch in own[name] if switch in lonely]
        _stack(spots, low, neighbours, max(spots[rank].y for rank in members) + row, 1, row)
        high = [switch for switch in own[name] if switch not in lonely]
        _stack(spots, high, neighbours, min(spots[rank].y for rank in members) - row, -1, row)
    frames = _frames(spots, groups, own)
    shared = [node for node in range(ranks, len(topology.nodes)) if node not in inner]
    top = min((corner[1] for _, corner, _ in frames), default=min(spot.y for spot in spots.values()))
    _stack(spots, shared, neighbours, top - row * 0.7, -1, row)
    return _moved_to_origin(spots, frames, spacing)


def _neighbours(topology: Topology) -> dict[int, set[int]]:
    neighbours: defaultdict[int, set[int]] = defaultdict(set)
    for source, target in topology.capacities:
        neighbours[source].add(target)
        neighbours[target].add(source)
    return neighbours


def _groups(topology: Topology) -> dict[str, list[int]]:
    """Ranks by host, in rank order; ranks without a host share a nameless one."""
    groups = {host: sorted(map(topology.index, members)) for host, members in topology.hosts.items() if members}
    housed = {rank for members in groups.values() for rank in members}
    if rest := [rank for rank in range(len(topology.ranks)) if rank not in housed]:
        groups[""] = rest
    return groups


def _inner_switches(
    topology: Topology, neighbours: dict[int, set[int]], groups: dict[str, list[int]]
) -> dict[int, str]:
    """The host of each switch all of whose rank neighbours live there; the nameless host has none."""
    home = {rank: name for name, members in groups.items() for rank in members}
    inner = {}
    for switch in range(len(topology.ranks), len(topology.nodes)):
        homes = {home[node] for node in neighbours[switch] if node in home}
        if len(homes) == 1 and (name := homes.pop()):
            inner[switch] = name
    return inner


def _row(
    spots: dict[int, Spot], members: Sequence[int], neighbours: dict[int, set[int]], left: float, spacing: float
) -> float:
    size = min(13.0, spacing * 0.36)
    for position, rank in enumerate(members):
        spots[rank] = Spot(left + (position + 0.5) * spacing, 0.0, size, size)
    return left + len(members) * spacing


def _compact(
    spots: dict[int, Spot], members: Sequence[int], neighbours: dict[int, set[int]], left: float, spacing: float
) -> float:
    """The circle or the grid in which the links among `members` are shortest; grids must be clearly shorter, since
    some of their links have to bow around other ranks."""
    count, size = len(members), min(13.0, spacing * 0.36)
    wide = [columns for columns in range(3, count) if count % columns == 0 and columns**2 >= count]
    grids = [_grid(count, columns, spacing) for columns in wide]
    links = [(i, j) for i, one in enumerate(members) for j, two in enumerate(members) if two in neighbours[one]]
    best = min([_circle(count, spacing), *grids], key=lambda points: _length(points, links, grid=points in grids))
    shift = left + size - min(x for x, _ in best)
    for rank, (x, y) in zip(members, best, strict=True):
        spots[rank] = Spot(x + shift, y, size, size)
    return max(spots[rank].x for rank in members) + size


def _circle(count: int, spacing: float) -> list[Point]:
    radius = max(spacing, 1.15 * spacing * count / (2 * pi))
    angles = [2 * pi * (position + 0.5) / count - pi / 2 for position in range(count)]
    return [(radius * cos(angle), radius * sin(angle)) for angle in angles]


def _grid(count: int, columns: int, spacing: float) -> list[Point]:
    """Rows a little apart from upright, so that links to what lies above pass beside the ranks."""
    step = 1.5 * spacing
    return [(step * (i % columns) + 0.3 * step * (i // columns), step * (i // columns)) for i in range(count)]


def _length(points: Sequence[Point], links: Sequence[tuple[int, int]], grid: bool) -> float:
    near = min((dist(one, two) for one, two in combinations(points, 2)), default=1.0)
    return sum(dist(points[one], points[two]) for one, two in links) / near * (1.2 if grid else 1.0)


def _stack(
    spots: dict[int, Spot], switches: Sequence[int], neighbours: dict[int, set[int]], y: float, up: int, row: float
) -> None:
    """Bars across what they serve, layer by layer from the ranks outwards; bars that would cover each other stand in
    rows of their own. y: height of the first row. up: −1 to go upwards, 1 to go down."""
    waiting = list(switches)
    while waiting:
        layer = [switch for switch in waiting if neighbours[switch] & spots.keys()] or waiting
        bars = {switch: _bar(_served(spots, neighbours[switch])) for switch in layer}
        rows: list[list[Spot]] = []
        for bar in bars.values():
            free = next((line for line in rows if not any(_covers(bar, other) for other in line)), None)
            if free is None:
                rows.append(free := [])
            free.append(bar)
        for position, line in enumerate(rows):
            for bar in line:
                bar.y = y + up * position * 3 * BAR
        y += up * (3 * BAR * (len(rows) - 1) + row)
        spots.update(bars)
        waiting = [switch for switch in waiting if switch not in spots]


def _served(spots: dict[int, Spot], neighbours: set[int]) -> list[Spot]:
    """What a switch's bar spans: its ranks if it has some, else the switches already in place."""
    placed = [spots[node] for node in neighbours if node in spots]
    ranks = [spot for spot in placed if not spot.is_bar]
    return ranks or placed


def _bar(served: Sequence[Spot]) -> Spot:
    left = min((spot.x - spot.half_width for spot in served), default=0.0)
    right = max((spot.x + spot.half_width for spot in served), default=0.0)
    return Spot((left + right) / 2, 0.0, max((right - left) / 2, 2 * BAR) + 4, BAR)


def _covers(bar: Spot, other: Spot) -> bool:
    return abs(bar.x - other.x) < bar.half_width + other.half_width + BAR


def _frames(
    spots: dict[int, Spot], groups: dict[str, list[int]], own: dict[str, list[int]]
) -> list[tuple[str, Point, Point]]:
    """A frame around each host and its switches, with room for the host's name."""
    frames = []
    for name in filter(None, groups):
        inside = [spots[node] for node in (*groups[name], *own[name])]
        left = min(spot.x - spot.half_width for spot in inside) - 16
        right = max(spot.x + spot.half_width for spot in inside) + 16
        top = min(spot.y - spot.half_height for spot in inside) - 14
        bottom = max(spot.y + spot.half_height for spot in inside) + 28
        frames.append((name, (left, top), (right - left, bottom - top)))
    return frames


def _moved_to_origin(spots: dict[int, Spot], frames: list[tuple[str, Point, Point]], spacing: float) -> Layout:
    corners = [at for _, at, _ in frames] + [(s.x - s.half_width, s.y - 2 * s.half_height) for s in spots.values()]
    ends = [(x + width, y + height) for _, (x, y), (width, height) in frames]
    ends += [(s.x + s.half_width, s.y + 2 * s.half_height) for s in spots.values()]
    left, top = (min(values) for values in zip(*corners, strict=True))
    right, bottom = (max(values) for values in zip(*ends, strict=True))
    moved = {node: Spot(s.x - left, s.y - top, s.half_width, s.half_height) for node, s in sorted(spots.items())}
    shifted = [(name, (x - left, y - top), size) for name, (x, y), size in frames]
    return Layout(moved, shifted, right - left, bottom - top, spacing)
