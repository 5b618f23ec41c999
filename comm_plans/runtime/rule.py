"""Which calls go by plan: from the size on from which a plan is predicted to be faster than gloo's own algorithm.

Both sides are α–β models: the network's time for the bytes or the busiest rank's work on them, whichever is longer,
and for each hop that the first chunk makes its latency.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

from comm_plans.errors import listed
from comm_plans.plan import Plan
from comm_plans.runtime.costs import GLOO, Costs
from comm_plans.runtime.inner_time import stages
from comm_plans.runtime.lowering import lower
from comm_plans.sizes import shown_bytes, shown_seconds

GIGA = 10**9
SIZES = tuple(2**power for power in range(8, 35))
SHOWN_SIZE = 8 * 2**20


class Rule:
    """Predicted seconds of one plan's collective, by plan with a transport of certain costs, and by gloo."""

    def __init__(self, plan: Plan, costs: Costs) -> None:
        self.plan = plan
        self._costs = costs
        self._program = lower(plan)[0]
        self._traffic = float(_traffic(plan))
        self._hops = max(tree.levels for tree in self._program.trees)
        self._stages = stages(plan.collective, len(plan.topology.ranks), plan.root)
        self._network = float(sum(stage.seconds_per_gigabyte(plan.topology) for stage in self._stages)) / GIGA

    def by_plan(self, size_bytes: int) -> float:
        """Seconds by plan for a full buffer of so many bytes."""
        work = self._traffic * size_bytes * self._costs.byte
        return max(self._program.seconds(size_bytes), work) + self._costs.start + self._hops * self._costs.hop

    def by_gloo(self, size_bytes: int) -> float:
        """Seconds by gloo."""
        work = float(sum(stage.traffic() for stage in self._stages)) * GLOO.byte
        steps = sum(stage.steps for stage in self._stages)
        return size_bytes * max(self._network, work) + GLOO.start + steps * GLOO.hop

    def threshold(self) -> int | None:
        """The least power of two of bytes from which the plan stays ahead; None where it never gets there."""
        chosen = None
        for size in reversed(SIZES):
            if self.by_plan(size) > self.by_gloo(size):
                break
            chosen = size
        return chosen


def sentences(rules: Sequence[Rule], from_bytes: Sequence[int | None]) -> list[str]:
    """What is done with each collective and why, a line each; roots that are treated alike share one."""
    alike: defaultdict[tuple[str, int | None], list[Rule]] = defaultdict(list)
    for rule, size in zip(rules, from_bytes, strict=True):
        alike[rule.plan.collective, size].append(rule)
    return [_sentence(collective, size, group) for (collective, size), group in alike.items()]


def _sentence(collective: str, from_bytes: int | None, rules: Sequence[Rule]) -> str:
    roots = [str(rule.plan.root) for rule in rules if rule.plan.root is not None]
    name = f"{collective} (root {listed(roots)})" if roots else collective
    choice = "never by plan" if from_bytes is None else f"by plan from {shown_bytes(from_bytes)}"
    by_plan, by_gloo = (shown_seconds(side(SHOWN_SIZE)) for side in (rules[0].by_plan, rules[0].by_gloo))
    return f"{name}: {choice}; {shown_bytes(SHOWN_SIZE)} take {by_plan} by plan, {by_gloo} by gloo"


def _traffic(plan: Plan) -> Fraction:
    """Shares of the full buffer that the busiest rank sends and receives."""
    ends: defaultdict[int, Fraction] = defaultdict(Fraction)
    for tree in plan.trees:
        for path in tree.paths:
            for node in (path[0], path[-1]):
                ends[node] += tree.share
    return max(ends.values())
