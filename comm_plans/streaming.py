"""How long a plan takes where its trees stream: chunk after chunk, each edge at the rate that the plan gives its tree.

Every tree carries its part of the buffer at its part of `algbw`, so all of them need the same time for their bytes;
to that comes the filling of a tree's pipeline: one chunk for each hop but the first, at the tree's rate. Many thin or
deep trees therefore lose against few and shallow ones where buffers are small.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction

from comm_plans.errors import PlansError
from comm_plans.hops import aligned
from comm_plans.plan import Plan

GIGA = 10**9
FEWEST_BYTES, MOST_BYTES = 8 << 10, 128 << 10  # smaller chunks cost more work than they save time, larger ones no less
CHUNKS_A_LEVEL = 128  # filling the pipeline then adds less than one per cent for large buffers
TYPICAL_BYTES = 8 << 20  # a few of the buckets in which gradients travel
WORTH_TRYING = Fraction(1, 20)  # of the time that goes into filling
TREES_TRIED = (1, 2, 3)  # per rank


def chunk_bytes(carried: int, levels: int) -> int:
    """How many bytes move at a time along a tree that carries so many over so many hops in a row.

    A multiple of 16, so that no element of any type is cut.
    """
    wanted = carried // (CHUNKS_A_LEVEL * max(1, levels - 1))
    return min(max(wanted, FEWEST_BYTES), MOST_BYTES) & ~15


def streamed_seconds(plan: Plan, size_bytes: int) -> float:
    """Predicted time of a full buffer of `size_bytes`: all bytes at `algbw`, and filling the slowest pipeline."""
    levels: defaultdict[tuple[Fraction, Fraction], int] = defaultdict(int)
    for tree in aligned(plan):  # in an all_reduce the tree that hands out goes on where that which sums up ends
        levels[tree.start, tree.share] += tree.depth(len(plan.topology.ranks))
    parts = [(share, hops) for (_, share), hops in levels.items()]
    filling = max(filling_seconds(share * plan.algbw, hops, int(share * size_bytes)) for share, hops in parts)
    return float(size_bytes / plan.algbw / GIGA) + filling


def filling_seconds(rate: Fraction, levels: int, carried: int) -> float:
    """Time of a tree's first chunk from its second hop on; `rate` in GB/s, `carried` bytes over `levels` hops."""
    return float((levels - 1) * min(chunk_bytes(carried, levels), carried) / rate / GIGA)


def quickest_plan(solve: Callable[[int | None], Plan], size_bytes: int = TYPICAL_BYTES) -> Plan:
    """The plan that streams `size_bytes` in the least time, of the best one and those of few trees a rank.

    solve: gives the plan for a number of trees per rank, None for the best plan of any number.
    Of equally quick plans that with fewer, then shallower trees; equal on all ranks that ask the same.
    """
    best = solve(None)
    seconds = streamed_seconds(best, size_bytes)
    if seconds - size_bytes / best.algbw / GIGA <= WORTH_TRYING * seconds:
        return best
    plans = [best, *_few_trees(solve)]
    return min(plans, key=lambda plan: (streamed_seconds(plan, size_bytes), len(plan.trees), plan.depth))


def _few_trees(solve: Callable[[int | None], Plan]) -> Sequence[Plan]:
    plans = []
    for trees in TREES_TRIED:
        try:
            plans.append(solve(trees))
        except PlansError:  # a network whose forests cannot be held to a number of trees
            continue
    return plans
