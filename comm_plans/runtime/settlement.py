"""How the ranks of a group settle on one set of plans, or on having none, before the first collective.

Everybody states what it was told; rank 0 finds the plans and hands them out; everybody verifies and lowers them and
states what came of it. A fault of one rank is known to all of them, so that all raise or all do without plans.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from comm_plans.errors import PlansError
from comm_plans.live import LivePlans, check_world_size, plans_for
from comm_plans.runtime.agreement import Meeting
from comm_plans.runtime.options import PlannedOptions
from comm_plans.runtime.routes import Routes
from comm_plans.sources import topology_from
from comm_plans.topology import Topology

Own = TypeVar("Own")
NO_NETWORK = "no topology or plan was named (COMM_PLANS_TOPOLOGY, COMM_PLANS_PLAN or pg_options)"


@dataclass(frozen=True)
class Told:
    """What a rank was told: its options, with the network and the plans where such were named."""

    options: PlannedOptions
    topology: Topology | None = None
    plans: LivePlans | None = None

    @classmethod
    def of(cls, options: PlannedOptions) -> Told:
        """Look up what is named. Raises PlansError where there is no such network or plan."""
        topology, plans = options.topology, options.plans
        return cls(
            options,
            topology_from(topology) if isinstance(topology, str) else topology,
            LivePlans.load(plans) if isinstance(plans, tuple) else plans,
        )

    def statement(self) -> dict[str, Any]:
        """What must be equal on all ranks; long things by their digest."""
        return {
            "topology": _digest(self.topology and self.topology.to_document()),
            "plan": _digest(self.plans and self.plans.to_documents()),
            "transport": self.options.transport,
            "pace": self.options.pace,
            "threshold_bytes": self.options.threshold_bytes,
        }

    def find(self, world_size: int) -> LivePlans | None:
        """The plans named, those for the network named, or None where neither is."""
        if self.plans is None and self.topology is not None:
            return plans_for(self.topology, world_size)
        if self.plans is not None:
            check_world_size(self.plans.topology, world_size)
        return self.plans


def settle(
    meeting: Meeting, world_size: int, told: Callable[[], Told], lowered: Callable[[Told, LivePlans], Routes]
) -> Routes:
    """The routes of this rank. Raises PlansError on every rank, with the same sentence, where any rank has a fault.

    told: what this rank was told. lowered: makes its routes of the plans; both may raise PlansError.
    """
    own = _agreed(meeting, told, Told.statement)
    plans = handed_out(meeting, lambda: own.find(world_size))
    if plans is None:
        raise PlansError(NO_NETWORK)
    return agreed(meeting, lambda: lowered(own, plans()))


def handed_out(meeting: Meeting, find: Callable[[], LivePlans | None]) -> Callable[[], LivePlans] | None:
    """What verifies and gives the plans that rank 0 finds, or None if it finds none.

    Raises PlansError on every rank where rank 0 has a fault.
    """
    found, fault = _attempt(find) if meeting.first else (None, None)
    package, fault = meeting.from_first([found and [found.to_documents(), found.source, found.seconds], fault])
    if fault:
        raise PlansError(fault)
    if package is None:
        return None
    return lambda: found or _unpacked(*package)


def agreed(meeting: Meeting, make: Callable[[], Routes]) -> Routes:
    """The routes that `make` gives, once all ranks have the same programs. Raises PlansError on every rank if not."""
    return _agreed(meeting, make, lambda routes: {"lowering of the plans": routes.digests})


def _agreed(meeting: Meeting, make: Callable[[], Own], stated: Callable[[Own], dict[str, Any]]) -> Own:
    """What `make` gives, once everybody's statement about it is the same as rank 0's."""
    own, fault = _attempt(make)
    statements = meeting.statements([stated(own) if own else None, fault])
    for rank, (_, fault) in enumerate(statements):
        if fault:
            raise PlansError(f"{fault} (rank {rank})")
    first = statements[0][0]
    for rank, (said, _) in enumerate(statements):
        if other := [what for what in first if said[what] != first[what]]:
            raise PlansError(f"rank {rank} has another {other[0]} than rank 0; start all ranks with the same one")
    assert own
    return own


def _attempt(action: Callable[[], Own]) -> tuple[Own | None, str | None]:
    """What the action gives, or the sentence it fails with."""
    try:
        return action(), None
    except PlansError as error:
        return None, str(error)


def _unpacked(documents: list[dict[str, Any]], source: str, seconds: float) -> LivePlans:
    return replace(LivePlans.from_documents(documents), source=source, seconds=seconds)


def _digest(document: Any) -> str | None:
    return None if document is None else hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()
