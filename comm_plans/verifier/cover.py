"""The intervals of the trees cover the buffer exactly once, and broadcasts begin where and when reductions end."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from comm_plans.verifier.arrays import Forest, Network, need


@dataclass(frozen=True, order=True)
class _Piece:
    """What one tree carries of the buffer, and the steps between which it does so (0, −1 without steps)."""

    start: Fraction
    share: Fraction
    root: int
    broadcast: bool
    first_step: int
    last_step: int

    @property
    def end(self) -> Fraction:
        return self.start + self.share


def check_cover(document: dict[str, Any], forest: Forest, network: Network, shards: list[Fraction]) -> None:
    """Ask that the trees carry each part of the buffer once, from or to the right rank. Raises PlanError."""
    need(min(forest.shares) > 0, "a tree of the plan carries nothing; leave it out")
    pieces = sorted(_pieces(forest))
    collective, root = document["collective"], document.get("root")
    if collective in ("all_gather", "reduce_scatter"):
        _check_shards(pieces, shards, network)
        return
    reductions = [piece for piece in pieces if not piece.broadcast]
    broadcasts = [piece for piece in pieces if piece.broadcast]
    if collective == "all_reduce":
        _check_tiles(reductions, Fraction(0), Fraction(1), "the buffer to be summed")
        _check_tiles(broadcasts, Fraction(0), Fraction(1), "the buffer to be sent")
        _check_turns(reductions, broadcasts, network)
    else:
        _check_tiles(pieces, Fraction(0), Fraction(1), "the buffer")
        rooted = type(root) is int and all(piece.root == root for piece in pieces)
        need(rooted, f"a tree of this {collective} is not rooted at the plan's root")


def _pieces(forest: Forest) -> list[_Piece]:
    begins = np.cumsum(forest.edges) - forest.edges
    count = len(forest.edges)
    first, last = [0] * count, [-1] * count
    if forest.steps is not None:
        first = np.minimum.reduceat(forest.steps, begins).tolist()
        last = np.maximum.reduceat(forest.steps, begins).tolist()
    columns = (forest.starts, forest.shares, forest.roots.tolist(), forest.broadcasts.tolist(), first, last)
    return [_Piece(*row) for row in zip(*columns, strict=True)]


def _check_shards(pieces: list[_Piece], shards: list[Fraction], network: Network) -> None:
    own: list[list[_Piece]] = [[] for _ in shards]
    for piece in pieces:
        own[piece.root].append(piece)
    start = Fraction(0)
    for rank, shard in enumerate(shards):
        _check_tiles(own[rank], start, start + shard, f"the shard of {network.names[rank]}")
        start += shard


def _check_tiles(pieces: list[_Piece], start: Fraction, end: Fraction, what: str) -> None:
    for piece in pieces:
        need(piece.start <= start, f"no tree carries {what} from {start} to {piece.start}")
        need(piece.start == start, f"two trees carry {what} from {piece.start} on")
        start = piece.end
    need(start >= end, f"no tree carries {what} from {start} to {end}")
    need(start <= end, f"the trees carry more than {what}, which ends at {end}")


def _check_turns(reductions: list[_Piece], broadcasts: list[_Piece], network: Network) -> None:
    """Walk along the buffer, which both kinds tile: each point is sent from where, and after, it is summed."""
    here = there = 0
    while here < len(reductions) and there < len(broadcasts):
        reduction, broadcast = reductions[here], broadcasts[there]
        at = f"the part of the buffer at {max(reduction.start, broadcast.start)}"
        summed, sent = network.names[reduction.root], network.names[broadcast.root]
        need(reduction.root == broadcast.root, f"{at} is summed at {summed} but sent from {sent}")
        need(reduction.last_step < broadcast.first_step, f"{at} is sent from {sent} before it is summed there")
        end = min(reduction.end, broadcast.end)
        here += reduction.end == end
        there += broadcast.end == end
