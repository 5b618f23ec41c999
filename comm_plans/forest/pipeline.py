"""From trees to a chunked step schedule: the bandwidth-optimal pipelines of arXiv 2305.18461.

Each tree is cut into P chunks that follow one another down the tree: chunk c makes a hop of level d in step c + d, so
with D levels everything has arrived after P + D − 1 steps. A step takes one latency α and the time of its slowest
link, at most (bandwidth time) / P, hence T(P) = (P + D − 1)(α + bandwidth time / P): many chunks approach the
forest's bandwidth, few keep the latency low, and the best count for a message size lies near √((D − 1)·time / α).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import isqrt

import numpy as np

from comm_plans.errors import PlansError
from comm_plans.hops import Hops, Integers, aligned, tree_levels, unroll
from comm_plans.plan import Plan, Tree

MOST_HOPS = 4_000_000  # hops of a chunked plan that still fit a plan file and a verifier in memory


def pipeline(plan: Plan, chunks: int) -> Plan:
    """The forest `plan` as synchronous steps with each tree cut into `chunks`; the result is a plan like any other.

    Its algbw is that of the steps without latency: a little below the forest's, approaching it as chunks grow.
    Raises PlansError for a plan that has steps already, fewer than one chunk, or more chunks than a plan can hold.
    """
    hops = unroll(plan)
    _check(plan, chunks, len(hops.level))
    trees = aligned(plan)
    pieces = [
        _chunk(tree, levels, chunk, chunks)
        for chunk in range(chunks)
        for tree, levels in zip(trees, tree_levels(trees), strict=True)
    ]
    algbw = _stepped_algbw(hops, chunks)
    return replace(plan, trees=tuple(pieces), method="pipeline", algbw=algbw, optimal=algbw == plan.optimum)


def best_chunks(levels: int, bandwidth_seconds: float, latency: float, most: int) -> int:
    """The chunk count in 1…`most` with the least T(P), exactly: T is convex, so it lies beside the real minimum.

    levels: D. bandwidth_seconds: time of the whole message without latency. latency: α, seconds a step.
    """
    if latency == 0:
        return most if levels > 1 else 1
    ratio = (levels - 1) * bandwidth_seconds / latency  # infinite for the tiniest latencies
    below = isqrt(int(min(ratio, float(most) ** 2)))
    candidates = {min(max(count, 1), most) for count in (below, below + 1)}
    return min(sorted(candidates), key=lambda count: (count + levels - 1) * (latency + bandwidth_seconds / count))


def windows(levels: int, chunks: int) -> Iterator[tuple[int, int, int]]:
    """The steps of a pipeline as (how many alike, first level, end level): in step t the levels of t − P < d ≤ t are
    at work, each on its own chunk. Full steps, all alike, come as one."""
    full = chunks - levels + 1
    if full < 1:
        yield from ((1, max(0, step - chunks + 1), min(levels, step + 1)) for step in range(levels + chunks - 1))
        return
    yield from ((1, 0, end) for end in range(1, levels))
    yield full, 0, levels
    yield from ((1, first, levels) for first in range(1, levels))


def step_loads(hops: Hops, chunks: int) -> Iterator[tuple[int, Integers]]:
    """For each kind of step: how many there are and the units of all chunks (not of one) on each link; shape (L,)."""
    by_level = hops.loads_by_level()
    before = np.concatenate([np.zeros_like(by_level[:1]), np.cumsum(by_level, axis=0)])
    for count, first, end in windows(hops.levels, chunks):
        yield count, before[end] - before[first]


def _check(plan: Plan, chunks: int, hops: int) -> None:
    if any(tree.steps for tree in plan.trees):
        raise PlansError(f"the {plan.method} plan has steps already; give the forest it was made from")
    if not 1 <= chunks <= max(1, MOST_HOPS // max(hops, 1)):
        raise PlansError(
            f"{chunks} chunks of {hops} hops make a plan too large to hold or none at all; "
            f"give 1 to {max(1, MOST_HOPS // max(hops, 1))} chunks"
        )


def _chunk(tree: Tree, levels: Sequence[int], chunk: int, chunks: int) -> Tree:
    share = tree.share / chunks
    return replace(tree, start=tree.start + chunk * share, share=share, steps=tuple(level + chunk for level in levels))


def _stepped_algbw(hops: Hops, chunks: int) -> Fraction:
    """1 / Σ over steps of the slowest link's share / bandwidth, in GB/s."""
    total = Fraction(0)
    for count, loads in step_loads(hops, chunks):
        total += count * max(int(load) / each for load, each in zip(loads, hops.bandwidth, strict=True) if load)
    return chunks / (total * hops.unit)
