"""Which calls go by plan: from the size on from which a plan is predicted to be faster than gloo's own algorithm.

Both sides are α–β models: the fullest link's time or the busiest rank's own work, whichever is longer, and a hop's cost
for each hop that the first or the last chunk makes.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction

from comm_plans.plan import Plan
from comm_plans.runtime.costs import GLOO, Costs
from comm_plans.runtime.inner_time import stages
from comm_plans.sizes import shown_bytes, shown_seconds

GIGA = 10**9
SIZES = tuple(2**power for power in range(8, 35))
SHOWN_SIZE = 8 * 2**20
CHUNK = 32 * 2**10  # bytes of the chunks whose way through the trees fills the pipeline


@dataclass(frozen=True)
class Prediction:
    """Seconds that a collective takes: `network` a byte of the full buffer, `work` a byte of it, and `fixed`."""

    network: float
    work: float
    fixed: float

    def seconds(self, size_bytes: int) -> float:
        """For a full buffer of so many bytes."""
        return size_bytes * max(self.network, self.work) + self.fixed


def planned(plan: Plan, costs: Costs) -> Prediction:
    """By plan: its algbw, its busiest rank, and one chunk's way down its deepest tree."""
    levels = plan.depth * (2 if plan.collective == "all_reduce" else 1)
    slowest = min(tree.share for tree in plan.trees) * plan.algbw * GIGA
    fill = levels * (costs.hop + float(min(CHUNK / slowest, Fraction(1))))
    return Prediction(float(1 / (plan.algbw * GIGA)), float(_traffic(plan)) * costs.byte, costs.start + fill)


def inner(plan: Plan, costs: Costs = GLOO) -> Prediction:
    """The same collective by gloo on the plan's network."""
    done = stages(plan.collective, len(plan.topology.ranks), plan.root)
    network = sum(stage.seconds_per_gigabyte(plan.topology) for stage in done)
    work = sum(stage.traffic() for stage in done)
    steps = sum(stage.steps for stage in done)
    return Prediction(float(network / GIGA), float(work) * costs.byte, costs.start + steps * costs.hop)


def threshold(plan: Plan, costs: Costs) -> int | None:
    """The least power of two of bytes from which the plan stays ahead of gloo; None where it never gets there."""
    by_plan, by_gloo = planned(plan, costs), inner(plan)
    chosen = None
    for size in reversed(SIZES):
        if by_plan.seconds(size) > by_gloo.seconds(size):
            break
        chosen = size
    return chosen


def sentence(plan: Plan, costs: Costs, from_bytes: int | None) -> str:
    """What is done with a plan's collective and why, in a line."""
    name = plan.collective if plan.root is None else f"{plan.collective} of rank {plan.root}"
    choice = "never by plan" if from_bytes is None else f"by plan from {shown_bytes(from_bytes)}"
    seconds = (shown_seconds(side.seconds(SHOWN_SIZE)) for side in (planned(plan, costs), inner(plan)))
    return f"{name} {choice} ({shown_bytes(SHOWN_SIZE)}: {next(seconds)} by plan, {next(seconds)} by gloo)"


def _traffic(plan: Plan) -> Fraction:
    """Shares of the full buffer that the busiest rank sends and receives."""
    ends: defaultdict[int, Fraction] = defaultdict(Fraction)
    for tree in plan.trees:
        for path in tree.paths:
            for node in (path[0], path[-1]):
                ends[node] += tree.share
    return max(ends.values())
