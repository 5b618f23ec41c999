"""Which program a call follows: a collective, its root, and the size from which its plan is ahead."""

from __future__ import annotations

from dataclasses import dataclass, replace

from comm_plans.live import LivePlans
from comm_plans.runtime.costs import Costs
from comm_plans.runtime.lowering import lower
from comm_plans.runtime.program import RankProgram
from comm_plans.runtime.rule import Rule, sentences
from comm_plans.sizes import shown_bytes

Key = tuple[str, int | None]


@dataclass(frozen=True)
class Route:
    """A program and the bytes of the full buffer from which it is taken, None for never."""

    program: RankProgram
    from_bytes: int | None


@dataclass(frozen=True)
class Routes:
    """A rank's programs by collective and root, and the rule that chooses between them and gloo, in words."""

    by_call: dict[Key, Route]
    rule: str
    plans: LivePlans | None = None

    @classmethod
    def none(cls, reason: str) -> Routes:
        """No programs at all, for a reason."""
        return cls({}, f"{reason}; every collective goes by the inner group")

    @classmethod
    def of(cls, plans: LivePlans, rank: int, costs: Costs, threshold: int | None) -> Routes:
        """Programs of `plans`, taken from `threshold` bytes on, or as the rule of predicted times says."""
        rules = [Rule(plan, costs) for plan in plans.plans]
        chosen = [rule.threshold() if threshold is None else threshold for rule in rules]
        by_call = {
            (plan.collective, plan.root): Route(lower(plan)[rank], from_bytes)
            for plan, from_bytes in zip(plans.plans, chosen, strict=True)
        }
        origin = f"plans for {plans.topology.name} ({plans.source}, {plans.seconds:.3g} s)"
        return cls(by_call, "\n".join([origin, *sentences(rules, chosen)]), plans)

    def program(self, collective: str, root: int | None, size_bytes: int) -> RankProgram | None:
        """The program for a full buffer of so many bytes, or None where the inner group does it."""
        route = self.by_call.get((collective, root))
        if route is None or route.from_bytes is None or size_bytes < max(1, route.from_bytes):
            return None
        return route.program

    def taken_from(self, size_bytes: int | None) -> Routes:
        """The same programs, taken from so many bytes of the full buffer on; None: never."""
        by_call = {call: replace(route, from_bytes=size_bytes) for call, route in self.by_call.items()}
        choice = "never by plan" if size_bytes is None else f"by plan from {shown_bytes(size_bytes)}"
        return replace(self, by_call=by_call, rule=f"{self.rule.splitlines()[0]}\nas told: {choice}")

    def programs_not_in(self, other: Routes) -> list[RankProgram]:
        """The programs that the other routes do without."""
        return [route.program for route in self.by_call.values() if route.program.digest not in other.digests]

    @property
    def digests(self) -> list[str]:
        """What ranks compare."""
        return [route.program.digest for route in self.by_call.values()]
