"""A network without nodes that only pass on: what leads through two cables is as fast as the slower of them."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction

Cables = dict[str, dict[str, Fraction]]
"""GB/s each way between a node and its neighbours, from both ends."""


def lay(cables: Cables, one: str, other: str, bandwidth: Fraction) -> None:
    """Join two nodes; parallel cables add up."""
    for here, there in ((one, other), (other, one)):
        ways = cables.setdefault(here, {})
        ways[there] = ways.get(there, Fraction(0)) + bandwidth


def contract(cables: Cables, ends: Collection[str]) -> None:
    """Take out every node, but for `ends`, that leads nowhere or only from one neighbour to one other."""
    waiting = [node for node in cables if node not in ends]
    while waiting:
        node = waiting.pop()
        if node not in cables or len(cables[node]) > 2:
            continue
        ways = cables.pop(node)
        for neighbour in ways:
            del cables[neighbour][node]
        if len(ways) == 2:
            one, other = ways
            lay(cables, one, other, min(ways.values()))
        waiting += [neighbour for neighbour in ways if neighbour not in ends]
