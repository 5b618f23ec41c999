"""PCIe as a tree: which device hangs below which switch or socket, and how fast its way up is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import takewhile

from comm_plans.readers.rates import Rate


@dataclass
class Tree:
    """Each node below its parent; a node without one is a root. `leaves`: names that no switch may have."""

    leaves: frozenset[str] = frozenset()
    parents: dict[str, str] = field(default_factory=dict)
    uplinks: dict[str, Rate] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def name(self, kind: str) -> str:
        """A name for another switch of this kind."""
        while (name := f"{kind}{self.counts[kind]}") in self.leaves:
            self.counts[kind] += 1
        self.counts[kind] += 1
        return name

    def hang(self, node: str, parent: str, uplink: Rate) -> None:
        """Put `node`, with all below it, under `parent`."""
        self.parents[node] = parent
        self.uplinks[node] = uplink

    def upwards(self, node: str) -> Iterator[str]:
        """The node itself, its parent, and so on up to the root."""
        yield node
        while node in self.parents:
            node = self.parents[node]
            yield node

    def meeting_places(self, leaves: Iterable[str], others: Iterable[str]) -> dict[str, str]:
        """For each leaf the lowest node above it that also stands above one of `others`; none where they never meet."""
        above = {node for other in others for node in self.upwards(other)}
        found = {leaf: next((node for node in self.upwards(leaf) if node in above), None) for leaf in leaves}
        return {leaf: place for leaf, place in found.items() if place is not None}

    def below(self, place: str, leaves: Iterable[str]) -> list[str]:
        """Those of `leaves` that hang below `place`."""
        return [leaf for leaf in leaves if place in self.upwards(leaf)]

    def way(self, node: str, top: str = "") -> list[str]:
        """The nodes whose uplinks lead from `node` to `top`, by default to the root."""
        steps = takewhile(lambda step: step != top, self.upwards(node))
        return [step for step in steps if step in self.parents]
