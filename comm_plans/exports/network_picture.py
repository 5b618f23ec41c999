"""The network part of a plan's picture: hosts, nodes, the load of every link, the tight cut."""

from __future__ import annotations

from collections import defaultdict

from comm_plans.exports.courses import NEAR, Course, course
from comm_plans.exports.drawing import FAINT, INK, PAPER, TIGHT, Drawing, Point, mixed, wheel
from comm_plans.exports.layout import Layout, Spot
from comm_plans.hops import unroll
from comm_plans.plan import Plan

IDLE, BUSY = (214, 222, 233), (23, 78, 166)
WIDEST = 6.5
MOST_LABELS = {True: 40, False: 160}  # links that are still labelled where ranks are joined directly, or by switches


class NetworkPicture:
    """Draws a plan's network at `origin`. readable: whether there is room for names, arrow heads and labels."""

    def __init__(self, drawing: Drawing, plan: Plan, layout: Layout, origin: Point, readable: bool) -> None:
        self.drawing, self.plan, self.layout, self.origin, self.readable = drawing, plan, layout, origin, readable
        self.names, self.ranks = plan.topology.nodes, len(plan.topology.ranks)
        self.colours = {rank: wheel(rank, self.ranks) for rank in range(self.ranks)}
        self.cut = _smaller_side(plan)
        direct = any(max(ends) < self.ranks for ends in plan.topology.capacities)
        self.widest = 0.6 * WIDEST if direct else WIDEST
        self.labelled = readable and len(plan.topology.capacities) <= MOST_LABELS[direct]
        self.lanes = _lanes(plan, layout)

    def draw(self) -> None:
        """Frames below links below nodes."""
        for name, corner, size in self.layout.frames:
            self.drawing.box(self._at(corner), size, "#f5f7fa", "#dde3ea", round=12)
            if self.readable:
                at = self._at((corner[0] + size[0] / 2, corner[1] + size[1] - 8))
                self.drawing.text(at, name, 11.5, FAINT, anchor="middle")
        self._draw_links()
        for node, spot in self.layout.spots.items():
            self._draw_node(node, spot)

    def _at(self, point: Point) -> Point:
        return self.origin[0] + point[0], self.origin[1] + point[1]

    def _draw_links(self) -> None:
        hops = unroll(self.plan)
        carried = [float(int(units) * hops.unit) for units in hops.loads()]
        most = max(carried)
        for (source, target), bandwidth, share in zip(hops.links, hops.bandwidth, carried, strict=True):
            busy = min(1.0, share / float(bandwidth) * float(self.plan.algbw))
            hint = f"{self.names[source]} → {self.names[target]}: {share:.4g} of the data, busy {busy:.1%} of the time"
            self._draw_link(source, target, busy, 1.0 + (self.widest - 1.0) * share / most, hint)

    def _draw_link(self, source: int, target: int, busy: float, width: float, hint: str) -> None:
        spacing = self.layout.spacing
        width = width if self.readable else min(width / 2, spacing / 3)
        aside = 11.0 if self.readable else spacing / 5
        lane = self.lanes.get((min(source, target), max(source, target)))
        way = course(self.layout.spots[source], self.layout.spots[target], aside, NEAR * spacing, lane)
        way = Course(self._at(way.start), self._at(way.control), self._at(way.end))
        line = way.shortened(4 + width) if self.readable else way
        colour = mixed(IDLE, BUSY, busy)
        if tight := self._is_tight(source, target):
            self.drawing.curve(line.start, line.control, line.end, TIGHT, width + 3)
        self.drawing.curve(line.start, line.control, line.end, colour, width, hint)
        if self.readable:
            _draw_head(self.drawing, line, way.end, TIGHT if tight else colour, width)
        if self.labelled:
            self._draw_label(source, way, busy)

    def _draw_label(self, source: int, way: Course, busy: float) -> None:
        """The percentage, beside the link on its own side and near the rank that it joins."""
        part = min(0.5, 26 / max(way.length, 1))
        part = part if source < self.ranks else 1 - part
        (x, y), (right, down) = way.at(part), way.right(part)
        anchor = "start" if right > 0.3 else "end" if right < -0.3 else "middle"
        self.drawing.text((x + 7 * right, y + 3 + 9 * down), f"{100 * busy:.0f}", 8, INK, anchor=anchor)

    def _draw_node(self, node: int, spot: Spot) -> None:
        x, y = self._at((spot.x, spot.y))
        corner, size = (x - spot.half_width, y - spot.half_height), (2 * spot.half_width, 2 * spot.half_height)
        if node in self.cut and self.readable:
            around = (corner[0] - 5, corner[1] - 5), (size[0] + 10, size[1] + 10)
            self.drawing.box(*around, "none", TIGHT, round=9, dash="4 3", width=1.6)
        if node < self.ranks:
            self.drawing.circle((x, y), spot.half_width, self.colours[node])
        else:
            self.drawing.box(corner, size, "#414c5c", round=5)
        if self.readable or node >= self.ranks:
            name = self.names[node]
            fits = len(name) * 5.5 < size[0] + 3
            words = name if fits else f"{node}" if node < self.ranks else ""
            self.drawing.text((x, y + 3.6), words, 10, PAPER, anchor="middle", bold=True)

    def _is_tight(self, source: int, target: int) -> bool:
        """Whether a link counts in the tight cut: data leaves the bottleneck, sums enter it."""
        inside, outside = (self.names[node] in self.plan.bottleneck for node in (source, target))
        if not self.plan.bottleneck or inside == outside:
            return False
        return self.plan.collective == "all_reduce" or inside == (self.plan.trees[0].operation == "broadcast")


def _smaller_side(plan: Plan) -> set[int]:
    inside = {plan.topology.index(name) for name in plan.bottleneck}
    outside = set(range(len(plan.topology.nodes))) - inside
    return (inside if len(inside) <= len(outside) else outside) if inside else set()


def _lanes(plan: Plan, layout: Layout) -> dict[tuple[int, int], float]:
    """Where links between switches of different rows run: those of the narrower switch share out its width."""
    upright: defaultdict[int, list[int]] = defaultdict(list)
    for one, two in sorted({(min(ends), max(ends)) for ends in plan.topology.capacities}):
        spots = layout.spots
        if one >= len(plan.topology.ranks) and abs(spots[one].y - spots[two].y) > 1:
            narrow, wide = sorted((one, two), key=lambda node: (spots[node].half_width, node))
            upright[narrow].append(wide)
    lanes = {}
    for narrow, partners in upright.items():
        spot = layout.spots[narrow]
        for position, wide in enumerate(partners):
            x = spot.x + spot.half_width * (2 * (position + 1) / (len(partners) + 1) - 1)
            lanes[min(narrow, wide), max(narrow, wide)] = x
    return lanes


def _draw_head(drawing: Drawing, line: Course, tip: Point, colour: str, width: float) -> None:
    (right, down), size = line.right(1.0), 2 + 0.6 * width
    corners = [(line.end[0] + side * size * right, line.end[1] + side * size * down) for side in (1, -1)]
    drawing.polygon([tip, *corners], colour)
