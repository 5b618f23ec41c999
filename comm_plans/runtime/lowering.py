"""A plan lowered to one program a rank."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from comm_plans.errors import PlanError
from comm_plans.hops import aligned
from comm_plans.plan import Plan, Tree, shard_starts
from comm_plans.runtime.program import SHARDED, RankProgram, TreePart

LOWERING_VERSION = 1


def lower(plan: Plan) -> tuple[RankProgram, ...]:
    """The program of each rank, in rank order; steps, where the plan has some, are not waited for.

    Raises PlanError for a plan whose trees meet in switches, and for one of unequal shards.
    """
    ranks = len(plan.topology.ranks)
    _check_runnable(plan, ranks)
    pieces = _pieces(plan)
    digest = plan_digest(plan)
    return tuple(
        RankProgram(
            collective=plan.collective,
            root=plan.root,
            rank=rank,
            world_size=ranks,
            algbw=plan.algbw,
            digest=digest,
            trees=tuple(_part(plan, index, piece, rank) for index, piece in enumerate(pieces)),
        )
        for rank in range(ranks)
    )


def plan_digest(plan: Plan) -> str:
    """SHA-256 of everything that decides what the plan's programs do, in hexadecimal."""
    document = plan.to_document()
    del document["solve_seconds"]
    text = json.dumps([LOWERING_VERSION, document], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class _Shape:
    """Who hands to whom in one tree, and how many hops the farthest rank is from the root."""

    parent: Mapping[int, int]
    children: Mapping[int, tuple[int, ...]]
    depth: int


@dataclass(frozen=True)
class _Piece:
    """An interval of the full buffer that one reduce tree, one broadcast tree, or one after the other carries."""

    root: int
    start: Fraction
    share: Fraction
    reduce: _Shape
    broadcast: _Shape


NOTHING = _Shape({}, {}, 0)


def _check_runnable(plan: Plan, ranks: int) -> None:
    if any(end >= ranks for tree in plan.trees for path in tree.paths for end in (path[0], path[-1])):
        raise PlanError(
            f"the {plan.collective} plan adds up or copies in switches, which processes cannot ask of them; "
            "solve the topology with plain switches"
        )
    if plan.collective in SHARDED and len(set(plan.shards)) > 1:
        raise PlanError(f"the {plan.collective} plan has unequal shards; solve it for equal ones to run it")


def _pieces(plan: Plan) -> list[_Piece]:
    """The trees in the order of the buffer; those of an all_reduce in pairs over the same interval and root."""
    trees = aligned(plan)
    up = {tree.start: tree for tree in trees if tree.operation == "reduce"}
    down = {tree.start: tree for tree in trees if tree.operation == "broadcast"}
    return [_piece(plan, up.get(start), down.get(start), len(plan.topology.ranks)) for start in sorted({**up, **down})]


def _piece(plan: Plan, up: Tree | None, down: Tree | None, ranks: int) -> _Piece:
    roots = {tree.root for tree in (up, down) if tree}
    if len(roots) > 1:
        raise PlanError(f"the {plan.collective} plan sums a part at one rank and sends it from another; solve it again")
    some = up or down
    assert some
    return _Piece(some.root, some.start, some.share, _shape(up, ranks), _shape(down, ranks))


def _shape(tree: Tree | None, ranks: int) -> _Shape:
    if tree is None:
        return NOTHING
    parent: dict[int, int] = {}
    children: defaultdict[int, list[int]] = defaultdict(list)
    for path in tree.paths:
        near, far = (path[0], path[-1]) if tree.operation == "broadcast" else (path[-1], path[0])
        parent[far] = near
        children[near].append(far)
    return _Shape(parent, {rank: tuple(each) for rank, each in children.items()}, tree.depth(ranks))


def _part(plan: Plan, index: int, piece: _Piece, rank: int) -> TreePart:
    start, share = piece.start, piece.share
    if plan.collective in SHARDED:
        shard = plan.shards[piece.root]
        start, share = (start - shard_starts(plan.shards)[piece.root]) / shard, share / shard
    return TreePart(
        index=index,
        root=piece.root,
        start=start,
        share=share,
        rate=piece.share * plan.algbw,
        levels=piece.reduce.depth + piece.broadcast.depth,
        reduce_children=piece.reduce.children.get(rank, ()),
        reduce_parent=piece.reduce.parent.get(rank),
        broadcast_parent=piece.broadcast.parent.get(rank),
        broadcast_children=piece.broadcast.children.get(rank, ()),
    )
