"""One machine as its own tools describe it: GPUs, the fast links between them, PCIe below that, and network cards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from comm_plans.readers.rates import Rate
from comm_plans.readers.tree import Tree


@dataclass
class Machine:
    """GPUs in rank order. `links` are one way, between GPUs and `switches`; leaves of `tree` are GPUs and NICs.

    `nics`: each card's way into the network. `homes`: the host of a GPU, where the machine is several of them.
    """

    gpus: list[str]
    tree: Tree = field(default_factory=Tree)
    nics: dict[str, Rate] = field(default_factory=dict)
    links: list[tuple[str, str, Rate]] = field(default_factory=list)
    switches: list[str] = field(default_factory=list)
    homes: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def cable(self, one: str, other: str, rate: Rate) -> None:
        """Join two nodes both ways."""
        self.links += [(one, other, rate), (other, one, rate)]

    def fast_links_reach_all(self) -> bool:
        """Whether every GPU reaches every other without PCIe."""
        pairs = [(one, other) for one, other, _ in self.links]
        return len(groups([*self.gpus, *self.switches], pairs)) == 1

    def nearest_nics(self) -> dict[str, list[str]]:
        """For each GPU the network cards that are closest to it; a GPU that no card is joined to is left out."""
        places = self.tree.meeting_places(self.gpus, self.nics)
        return {gpu: self.tree.below(place, self.nics) for gpu, place in places.items()}


def groups(nodes: Iterable[str], pairs: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Nodes put together where pairs join them, directly or by others; all in the order of `nodes`."""
    leader = {node: node for node in nodes}

    def lead(node: str) -> str:
        while leader[node] != node:
            leader[node] = node = leader[leader[node]]
        return node

    for one, other in pairs:
        leader[lead(one)] = lead(other)
    found: dict[str, list[str]] = {}
    for node in leader:
        found.setdefault(lead(node), []).append(node)
    return list(found.values())
