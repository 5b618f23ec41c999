"""The course of a link on the page: from symbol to symbol, to the right of the straight line, around what is between.

Keeping to the right lays the two directions of a cable side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import hypot

from comm_plans.exports.drawing import Point
from comm_plans.exports.layout import Spot

BOW = 0.2  # how far a long link between ranks bends aside, as a part of its length
NEAR = 1.7  # in rank spacings: links up to this length have no rank between their ends


@dataclass(frozen=True)
class Course:
    """A quadratic Bézier curve."""

    start: Point
    control: Point
    end: Point

    def at(self, part: float) -> Point:
        """The point that lies `part` of the way along."""
        return between(between(self.start, self.control, part), between(self.control, self.end, part), part)

    def right(self, part: float) -> Point:
        """The unit vector to the right of the course there."""
        one, two = between(self.start, self.control, part), between(self.control, self.end, part)
        return right_of(one, two)

    @property
    def length(self) -> float:
        """Length of the straight line between the ends."""
        return hypot(self.end[0] - self.start[0], self.end[1] - self.start[1])

    def shortened(self, by: float) -> Course:
        """The course without its last `by` pixels, where an arrow head goes."""
        left = hypot(self.end[0] - self.control[0], self.end[1] - self.control[1]) or 1.0
        return Course(self.start, self.control, between(self.end, self.control, min(0.9, by / left)))


def course(one: Spot, other: Spot, aside: float, near: float, lane: float | None) -> Course:
    """The course from `one` to `other`. aside: distance between the two directions. near: length up to which links
    between ranks run straight. lane: where a link between two switches runs upright, if it does."""
    if lane is None and abs(one.y - other.y) < 1 and one.is_bar and other.is_bar:
        return _over_the_top(one, other, aside)
    start = _clamped(other.x if lane is None else lane, one), one.y
    end = _clamped(start[0], other), other.y
    start, end = _border(start, end, one), _border(end, start, other)
    right = right_of(start, end)
    start, end = _moved(start, right, aside / 2), _moved(end, right, aside / 2)
    length = hypot(end[0] - start[0], end[1] - start[1])
    bow = BOW * length if not (one.is_bar or other.is_bar) and length > near else 0.0
    return Course(start, _moved(between(start, end, 0.5), right, bow), end)


def _over_the_top(one: Spot, other: Spot, aside: float) -> Course:
    """An arc between two switches of one row; the two directions use different heights."""
    outward = 1 if one.x < other.x else -1
    height = 26 + 0.16 * abs(one.x - other.x) + (aside if outward > 0 else 0.0)
    start = one.x + outward * (0.5 * one.half_width + aside / 2), one.y - one.half_height
    end = other.x - outward * (0.5 * other.half_width + aside / 2), other.y - other.half_height
    return Course(start, ((start[0] + end[0]) / 2, start[1] - 2 * height), end)


def _clamped(x: float, spot: Spot) -> float:
    room = max(0.0, spot.half_width - 4) if spot.is_bar else 0.0
    return min(max(x, spot.x - room), spot.x + room)


def _border(at: Point, towards: Point, spot: Spot) -> Point:
    length = hypot(towards[0] - at[0], towards[1] - at[1])
    return between(at, towards, min(0.5, (spot.half_height + 1) / length)) if length else at


def _moved(point: Point, direction: Point, by: float) -> Point:
    return point[0] + by * direction[0], point[1] + by * direction[1]


def between(start: Point, end: Point, part: float) -> Point:
    """The point that lies `part` of the way from `start` to `end`."""
    return start[0] + part * (end[0] - start[0]), start[1] + part * (end[1] - start[1])


def right_of(start: Point, end: Point) -> Point:
    """Unit vector to the right of the way from `start` to `end`, as seen on the page."""
    length = hypot(end[0] - start[0], end[1] - start[1]) or 1.0
    return (start[1] - end[1]) / length, (end[0] - start[0]) / length
