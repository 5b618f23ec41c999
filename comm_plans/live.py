"""All plans that a process group needs on a network: from the cache where they are known, else solved and verified."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from comm_plans.errors import PlanError, PlansError
from comm_plans.plan import Plan, read_document
from comm_plans.streaming import quickest_plan
from comm_plans.topology import Switch, Topology

if TYPE_CHECKING:
    from comm_plans.cache import PlanCache

UNROOTED = ("all_reduce", "all_gather", "reduce_scatter")
ROOTED = ("broadcast", "reduce")
MOST_ROOTS = 16  # networks with more ranks get plans of broadcast and reduce for rank 0 only


@dataclass(frozen=True)
class LivePlans:
    """Plans on one network, at most one a collective and root; `source` says where they came from (`cache`, `solved`
    or `file`) and `seconds` how long that took."""

    plans: tuple[Plan, ...]
    source: str = "file"
    seconds: float = 0.0

    def __post_init__(self) -> None:
        if not self.plans:
            raise PlanError("there is no plan to go by; name at least one plan file")
        for plan in self.plans:
            _check_network(plan, self.topology)
        if len({(plan.collective, plan.root) for plan in self.plans}) < len(self.plans):
            raise PlanError("two plans are for the same collective and root; name one of them")

    @property
    def topology(self) -> Topology:
        """The network that every plan is made for."""
        return self.plans[0].topology

    @property
    def world_size(self) -> int:
        """Number of ranks that the plans are made for."""
        return len(self.topology.ranks)

    def to_documents(self) -> list[dict[str, Any]]:
        """Their JSON forms, as docs/plan-format.md describes them."""
        return [plan.to_document() for plan in self.plans]

    @classmethod
    def from_documents(cls, documents: Sequence[dict[str, Any]]) -> LivePlans:
        """Verify plans in their JSON form. Raises PlanError where one is not what it claims."""
        return cls(tuple(Plan.from_document(document) for document in documents))

    @classmethod
    def load(cls, paths: Iterable[str | Path]) -> LivePlans:
        """Read and verify plan files. Raises PlanError where one is missing or not what it claims."""
        return cls.from_documents([read_document(Path(path)) for path in paths])


def plans_for(
    topology: Topology,
    world_size: int,
    cache: PlanCache | None = None,
    collectives: Sequence[str] = UNROOTED + ROOTED,
) -> LivePlans:
    """The quickest plan of each collective on `topology`, of broadcast and reduce for every root (`MOST_ROOTS`).

    Switches are only asked to forward: what they could copy or add up, no process can tell them to.
    cache: where plans are kept; the user's own by default.
    Raises PlansError (one sentence) where the network has other ranks than the job or cannot carry a collective.
    """
    from comm_plans.cache import PlanCache

    check_world_size(topology, world_size)
    started = perf_counter()
    network = replace(topology, switches=tuple(Switch(switch.name) for switch in topology.switches))
    store = cache or PlanCache()
    origins: set[str] = set()

    def solve(trees: int | None, collective: str, root: int | None) -> Plan:
        plan, origin = store.solve(network, collective, root=root, trees_per_rank=trees)
        origins.add(origin)
        return plan

    questions = _questions(collectives, world_size)
    plans = tuple(quickest_plan(partial(solve, collective=one, root=root)) for one, root in questions)
    source = "cache" if origins == {"cache"} else "solved"
    return LivePlans(plans, source, round(perf_counter() - started, 3))


def check_world_size(topology: Topology, world_size: int) -> None:
    """Raise PlansError unless the network has a rank for each process of the job."""
    ranks = len(topology.ranks)
    if ranks != world_size:
        raise PlansError(
            f"{topology.name} is a network of {ranks} ranks and the job has {world_size}; "
            f"start {ranks} or name the network of {world_size}"
        )


def _questions(collectives: Sequence[str], world_size: int) -> Iterator[tuple[str, int | None]]:
    roots = range(world_size if world_size <= MOST_ROOTS else 1)
    for collective in collectives:
        yield from ((collective, root) for root in (roots if collective in ROOTED else (None,)))


def _check_network(plan: Plan, topology: Topology) -> None:
    if (plan.topology.ranks, plan.topology.capacities) != (topology.ranks, topology.capacities):
        raise PlanError(
            f"the plans for {plan.collective} and others are for different networks, {plan.topology.name} and "
            f"{topology.name}; solve them all on one"
        )
