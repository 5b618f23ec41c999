"""Which pages of a cache are free: handed out in as few stretches of consecutive pages as there are."""

from collections.abc import Iterable
from typing import NamedTuple


class Stretch(NamedTuple):
    """`size` consecutive pages from `first` on."""

    first: int
    size: int

    @property
    def end(self) -> int:
        return self.first + self.size


class Pages:
    """Free pages of 0 … count - 1, none of which is ever given twice."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._holes = [Stretch(0, count)] if count else []

    @property
    def free(self) -> int:
        return sum(hole.size for hole in self._holes)

    def take(self, count: int, after: int | None = None) -> list[Stretch]:
        """`count` pages, beginning at page `after` if that one is free. ValueError: fewer are free."""
        if count > self.free:
            raise ValueError(f"{count} pages are asked for, {self.free} are free.")
        taken = []
        while count:
            taken.append(self._cut(self._best(count, after), count))
            count -= taken[-1].size
        return taken

    def take_together(self, count: int) -> Stretch | None:
        """`count` consecutive pages; None if no stretch is that long."""
        if not any(hole.size >= count for hole in self._holes):
            return None
        return self._cut(self._best(count, None), count)

    def give_back(self, stretches: Iterable[Stretch]) -> None:
        """Free pages again; neighbours become one stretch."""
        self._holes = merged(sorted([*self._holes, *stretches]))

    def _best(self, count: int, after: int | None) -> Stretch:
        """The hole at `after`, else the smallest that is large enough, else the largest."""
        for hole in self._holes:
            if hole.first == after:
                return hole
        enough = [hole for hole in self._holes if hole.size >= count]
        return min(enough, key=lambda hole: hole.size) if enough else max(self._holes, key=lambda hole: hole.size)

    def _cut(self, hole: Stretch, count: int) -> Stretch:
        """Up to `count` pages from the beginning of a hole."""
        taken = Stretch(hole.first, min(count, hole.size))
        place = self._holes.index(hole)
        rest = Stretch(taken.end, hole.size - taken.size)
        self._holes[place : place + 1] = [rest] if rest.size else []
        return taken


def merged(stretches: Iterable[Stretch]) -> list[Stretch]:
    """The same pages in the same order, neighbours as one stretch."""
    result: list[Stretch] = []
    for stretch in stretches:
        if result and result[-1].end == stretch.first:
            stretch = Stretch(result[-1].first, result.pop().size + stretch.size)
        result.append(stretch)
    return result
