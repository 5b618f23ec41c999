"""Trees become thread blocks: long chains of a tree run through one thread block a rank, side branches get their own.

At every rank of a tree the child that the deepest branch leads to is its main child. Receiving from the parent and
sending to the main child is one thread block (recv-copy-send; mirrored for a reduction: recv-reduce-send); each other
child costs one more thread block that waits for it. Every step so needs one dependency at most. Trees with equal paths
are one family and always run one after the other in the same thread blocks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import lcm

from comm_plans.errors import PlansError
from comm_plans.exports.msccl_program import Place, Program, Wait
from comm_plans.hops import aligned
from comm_plans.plan import Plan, Tree

MOST_CHUNKS_A_STEP = 71  # the interpreters refuse a count of 72 or more
Piece = tuple[int, int]  # first chunk and number of chunks, of the full buffer


@dataclass(frozen=True, eq=False)
class Shape:
    """A tree without direction: its root, the children of every rank (main child first) and the parents."""

    root: int
    children: Mapping[int, Sequence[int]]
    parent: Mapping[int, int]

    def main_branch(self, rank: int) -> Iterator[int]:
        """`rank`, its main child, that one's main child, … down to a leaf."""
        yield rank
        while children := self.children.get(rank):
            rank = children[0]
            yield rank


def lower(plan: Plan, share: bool) -> Program:
    """The MSCCL program of a plan. Raises PlansError where MSCCL has no words for it.

    share: run different trees one after the other in the same thread blocks, of which there are then fewer.
    """
    trees = aligned(plan)
    _check_words(plan, trees)
    chunks = lcm(len(plan.topology.ranks), *(end.denominator for tree in trees for end in (tree.start, tree.share)))
    program = Program(len(plan.topology.ranks), chunks, share)
    _copy_own_input(program, plan)
    for (up, down), pieces in _families(trees, chunks).items():
        program.family += 1
        _Lowering(program, plan.collective, pieces).run(up, down)
    return program


def _check_words(plan: Plan, trees: Sequence[Tree]) -> None:
    ranks = len(plan.topology.ranks)
    busy = {end for tree in trees for path in tree.paths for end in (path[0], path[-1]) if end >= ranks}
    if busy:
        names = ", ".join(plan.topology.nodes[node] for node in sorted(busy))
        raise PlansError(f"switch {names} multicasts or reduces in this plan, which MSCCL cannot say; solve without")
    if plan.root is None and len(set(plan.shards)) > 1:
        raise PlansError("the shards of this plan differ in size, which MSCCL cannot say; solve with equal shards")


def _families(trees: Sequence[Tree], chunks: int) -> dict[tuple[Shape | None, Shape | None], list[Piece]]:
    """Pieces of the buffer by the reduce tree that sums them and the broadcast tree that spreads them."""
    shapes: dict[tuple[str, int, tuple[tuple[int, ...], ...]], Shape] = {}
    routes: defaultdict[tuple[Fraction, Fraction], dict[str, Shape]] = defaultdict(dict)
    for tree in trees:
        key = (tree.operation, tree.root, tree.paths)
        shape = shapes[key] if key in shapes else shapes.setdefault(key, _shape(tree))
        routes[tree.start, tree.share][tree.operation] = shape
    families: defaultdict[tuple[Shape | None, Shape | None], list[Piece]] = defaultdict(list)
    for (start, share), ways in sorted(routes.items()):
        family = families[ways.get("reduce"), ways.get("broadcast")]
        family.extend(_pieces(int(start * chunks), int((start + share) * chunks)))
    return dict(families)


def _pieces(first: int, end: int) -> Iterator[Piece]:
    for start in range(first, end, MOST_CHUNKS_A_STEP):
        yield start, min(MOST_CHUNKS_A_STEP, end - start)


def _shape(tree: Tree) -> Shape:
    pairs = [(path[0], path[-1]) if tree.operation == "broadcast" else (path[-1], path[0]) for path in tree.paths]
    if tree.operation == "reduce":
        pairs.reverse()
    children: defaultdict[int, list[int]] = defaultdict(list)
    for parent, child in pairs:
        children[parent].append(child)
    height: dict[int, int] = {}
    for parent, child in reversed(pairs):
        height[parent] = max(height.get(parent, 0), height.get(child, 0) + 1)
    for siblings in children.values():
        siblings.sort(key=lambda child: -height.get(child, 0))
    return Shape(tree.root, dict(children), {child: parent for parent, child in pairs})


def _copy_own_input(program: Program, plan: Plan) -> None:
    """What a rank contributes to its own output: its shard (all_gather) or, at the root, everything (broadcast)."""
    if plan.collective not in ("all_gather", "broadcast"):
        return
    ranks = range(program.ranks) if plan.root is None else [plan.root]
    own = program.chunks // len(ranks)
    for position, rank in enumerate(ranks):
        block = program.block(rank, 0)
        for first, length in _pieces(0, own):
            block.add("cpy", Place("i", first), Place("o", position * own + first), length)


class _Lowering:
    """Thread blocks of one family: the pieces that one reduce tree and one broadcast tree carry."""

    def __init__(self, program: Program, collective: str, pieces: Sequence[Piece]) -> None:
        self.program = program
        self.collective = collective
        self.pieces = pieces

    def run(self, up: Shape | None, down: Shape | None) -> None:
        """Build the thread blocks of the way up, of the way down, or of both with a turn at their common root."""
        if up is None and down is not None:
            self.spread(down, {})
        elif up is not None and down is None:
            self.sum_up(up)
        elif up is not None and down is not None:
            self.turn(up, down)

    def spread(self, shape: Shape, waits: dict[int, list[Wait]], skip_main: bool = False) -> None:
        """Broadcast: a chain for each child that is no main child (and for the root's main child). waits: the steps,
        one a piece, after which a rank holds the data; the root of a plain broadcast holds it from the start."""
        for child in list(shape.children[shape.root])[skip_main:]:
            self.send_branch(shape, shape.root, child, waits)

    def send_branch(self, shape: Shape, sender: int, child: int, waits: dict[int, list[Wait]]) -> None:
        """The chain from `sender` through `child` along main children, then the branches that leave it."""
        chain = list(shape.main_branch(child))
        channel = self.program.claim_channel([sender, *chain])
        block = self.program.block(sender, channel, send_to=child)
        for index, (first, length) in enumerate(self.pieces):
            if sender in waits:
                block.add("s", Place("o", first), Place("o", first), length, waits[sender][index])
            else:
                block.add("s", self.source(sender, first), Place("o", first), length)
        self.pass_down(shape, sender, chain, channel, waits)

    def pass_down(
        self, shape: Shape, sender: int, chain: Sequence[int], channel: int, waits: dict[int, list[Wait]]
    ) -> None:
        """Thread blocks along a chain whose first rank hears from `sender`; then the other branches of its ranks."""
        for previous, rank, following in zip([sender, *chain], chain, [*chain[1:], -1], strict=False):
            block = self.program.block(rank, channel, receive_from=previous, send_to=following)
            kind = "r" if following < 0 else "rcs"
            waits[rank] = [
                block.add(kind, Place("o", first), Place("o", first), length) for first, length in self.pieces
            ]
        for rank in chain:
            for child in shape.children.get(rank, ())[1:]:
                self.send_branch(shape, rank, child, waits)

    def sum_up(self, shape: Shape) -> None:
        """Reduce: every chain ends at the rank that adds it; the root's main chain ends with the result."""
        chain = list(shape.main_branch(shape.root))
        channel = self.program.claim_channel(chain[::-1])
        self.collect(shape, chain, channel, keep=True)

    def turn(self, up: Shape, down: Shape) -> None:
        """All-reduce: the root's thread block receives the last partial sum and sends the sum on in one step, unless
        the way down would use a connection of the way up again, whose channel is then taken."""
        rising, falling = list(up.main_branch(up.root)), list(down.main_branch(down.children[down.root][0]))
        walk = [*rising[::-1], *falling]
        fused = len(set(pairwise(walk))) == len(walk) - 1
        channel = self.program.claim_channel(walk if fused else rising[::-1])
        summed = self.collect(up, rising, channel, keep=True, send_to=falling[0] if fused else -1)
        waits = {down.root: summed}
        if fused:
            self.pass_down(down, down.root, falling, channel, waits)
        self.spread(down, waits, skip_main=fused)

    def collect(self, shape: Shape, chain: Sequence[int], channel: int, keep: bool, send_to: int = -1) -> list[Wait]:
        """Thread blocks of one chain (top first) and of the branches that join it. keep: the top rank stores the sum.
        send_to: where the top rank passes it on, or -1. Returns the top rank's last steps, one a piece."""
        last: list[Wait] = []
        for position in reversed(range(len(chain))):
            rank, top = chain[position], position == 0
            below = chain[position + 1] if position + 1 < len(chain) else -1
            onward = send_to if top else chain[position - 1]
            sums, partial = self.add_branches(shape, rank)
            block = self.program.block(rank, channel, receive_from=below, send_to=onward)
            kind = _summing_kind(below >= 0, keep and top, onward >= 0)
            last = [
                block.add(kind, held, self.result(rank, first) if keep and top else held, length, wait)
                for (first, length), held, wait in zip(self.pieces, partial, sums, strict=True)
            ]
        return last

    def add_branches(self, shape: Shape, rank: int) -> tuple[list[Wait | None], list[Place]]:
        """Add the partial sums of a rank's other children one after the other; returns for each piece the step to
        wait for and the place where the sum so far lies (the rank's own input if there are no other children)."""
        waits: list[Wait | None] = [None] * len(self.pieces)
        held = [self.source(rank, first) for first, _ in self.pieces]
        branches = shape.children.get(rank, ())[1:]
        sums = [self.partial(shape, rank, *piece) for piece in self.pieces] if branches else held
        for child in branches:
            chain = [*shape.main_branch(child)]
            channel = self.program.claim_channel([*chain[::-1], rank])
            self.collect(shape, chain, channel, keep=False, send_to=rank)
            block = self.program.block(rank, channel, receive_from=child)
            waits = [
                block.add("rrc", source, target, length, wait)
                for (_, length), source, target, wait in zip(self.pieces, held, sums, waits, strict=True)
            ]
            held = sums
        return waits, held

    def source(self, rank: int, first: int) -> Place:
        """Where the input of `rank` holds a piece; an all_gather's input is the rank's shard alone."""
        return Place("i", first - rank * self.shard if self.collective == "all_gather" else first)

    def result(self, rank: int, first: int) -> Place:
        """Where the output of `rank` holds a piece; a reduce_scatter's output is the rank's shard alone."""
        return Place("o", first - rank * self.shard if self.collective == "reduce_scatter" else first)

    def partial(self, shape: Shape, rank: int, first: int, length: int) -> Place:
        """Where a partial sum may grow: in the output where that is this rank's own anyway, else in scratch memory,
        since the input of a collective is never written."""
        if self.collective == "all_reduce" or rank == shape.root:
            return self.result(rank, first)
        return self.program.claim_scratch(rank, length)

    @property
    def shard(self) -> int:
        return self.program.chunks // self.program.ranks


def _summing_kind(receives: bool, keeps: bool, sends: bool) -> str:
    """The instruction of a rank on the way up: a leaf only sends."""
    if not receives:
        return "s"
    return "rr" + ("c" if keeps else "") + ("s" if sends else "")
