"""A plan as synchronous rounds of sends and receives, for backends that match messages by order and not by tag.

Chunk c of a tree makes a hop of level d in round c + d, as in a pipeline. Within a round both ends of every pair list
their messages in the same order, so that NCCL, which pairs them up by order, moves the right ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from comm_plans.hops import aligned, tree_levels
from comm_plans.plan import Plan
from comm_plans.runtime.lowering import lower
from comm_plans.runtime.program import RankProgram


@dataclass(frozen=True)
class Message:
    """One chunk of one tree between this rank and a peer; what is received is added up if `adds`."""

    tree: int
    chunk: int
    peer: int
    sends: bool
    adds: bool


@dataclass(frozen=True)
class RoundProgram:
    """A rank's program with its messages round by round; each tree's piece is cut into `chunks` of equal size."""

    program: RankProgram
    chunks: int
    rounds: tuple[tuple[Message, ...], ...]

    def span(self, message: Message, elements: int) -> tuple[int, int]:
        """Elements `[low, high)` of a full buffer of `elements` that the message carries."""
        low, high = self.program.piece(self.program.trees[message.tree], elements)
        size = high - low
        return low + size * message.chunk // self.chunks, low + size * (message.chunk + 1) // self.chunks


def in_rounds(plan: Plan, chunks: int) -> tuple[RoundProgram, ...]:
    """The round program of each rank, in rank order, with every tree cut into `chunks`.

    Raises PlanError for plans that `lower` refuses.
    """
    messages = _messages(plan, chunks)
    last = max((number for rounds in messages.values() for number in rounds), default=-1)
    return tuple(
        RoundProgram(program, chunks, tuple(tuple(messages[program.rank][number]) for number in range(last + 1)))
        for program in lower(plan)
    )


def _messages(plan: Plan, chunks: int) -> Mapping[int, Mapping[int, list[Message]]]:
    """By rank and round, in an order that is the same at both ends."""
    found: defaultdict[int, defaultdict[int, list[Message]]] = defaultdict(lambda: defaultdict(list))
    for index, adds, source, target, level in sorted(_hops(plan)):
        for chunk in range(chunks):
            found[source][level + chunk].append(Message(index, chunk, target, sends=True, adds=False))
            found[target][level + chunk].append(Message(index, chunk, source, sends=False, adds=adds))
    return found


def _hops(plan: Plan) -> Sequence[tuple[int, bool, int, int, int]]:
    """Tree, whether it adds up, sender, receiver and level of each hop; trees are numbered as `lower` does."""
    trees = aligned(plan)
    index = {start: number for number, start in enumerate(sorted({tree.start for tree in trees}))}
    return [
        (index[tree.start], tree.operation == "reduce", path[0], path[-1], level)
        for tree, levels in zip(trees, tree_levels(trees), strict=True)
        for path, level in zip(tree.paths, levels, strict=True)
    ]
