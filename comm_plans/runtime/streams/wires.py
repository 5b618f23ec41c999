"""Which connections a program needs: one for each edge of each tree and phase, and a lifeline to each neighbour."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from comm_plans.runtime.program import RankProgram, TreePart


class Phase(IntEnum):
    """What a connection is for."""

    REDUCE = 0
    BROADCAST = 1
    LIFELINE = 2


class Wire(NamedTuple):
    """One connection, made by `source` to `target`; data flows that way. A lifeline has no tree: 0 stands there."""

    phase: Phase
    tree: int
    source: int
    target: int

    def peer(self, rank: int) -> int:
        """The rank at the other end."""
        return self.target if self.source == rank else self.source


def wires(program: RankProgram) -> list[Wire]:
    """All connections that the program's rank is an end of."""
    data = [wire for tree in program.trees for wire in _of_tree(tree, program.rank)]
    neighbours = sorted({wire.peer(program.rank) for wire in data})
    return data + [Wire(Phase.LIFELINE, 0, *sorted((program.rank, peer))) for peer in neighbours]


def _of_tree(tree: TreePart, rank: int) -> Iterator[Wire]:
    for child in tree.reduce_children:
        yield Wire(Phase.REDUCE, tree.index, child, rank)
    if tree.reduce_parent is not None:
        yield Wire(Phase.REDUCE, tree.index, rank, tree.reduce_parent)
    if tree.broadcast_parent is not None:
        yield Wire(Phase.BROADCAST, tree.index, tree.broadcast_parent, rank)
    for child in tree.broadcast_children:
        yield Wire(Phase.BROADCAST, tree.index, rank, child)
