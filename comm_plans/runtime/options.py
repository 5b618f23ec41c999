"""What a person can say about a planned group: as `pg_options`, or by environment variables where there are none.

COMM_PLANS_TOPOLOGY    a topology file or a fabric such as dgx_a100:boxes=2
COMM_PLANS_PLAN        plan files, separated as in PATH
COMM_PLANS_TRANSPORT   streams or p2p
COMM_PLANS_INTERFACE   the network interface that data goes over, such as eth0
COMM_PLANS_STRICT      1: what cannot go by plan is an error
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from comm_plans.errors import PlansError
from comm_plans.live import LivePlans
from comm_plans.topology import Topology

TRANSPORTS = ("streams", "p2p")
SWITCHED = {"": False, "0": False, "1": True}


@dataclass(frozen=True)
class PlannedOptions:
    """How a group moves its data.

    topology: the network, as a file, a fabric's words or a Topology; its plans come from the cache or are solved.
    plans: plans to go by instead, or their files. transport: `streams` (own TCP connections, paced) or `p2p` (sends of
    an inner group). interface: the data's network interface; GLOO_SOCKET_IFNAME's by default. strict: raise where a
    plan cannot be used, instead of a remark and the inner group. pace: send no faster than planned. threshold_bytes:
    go by plan from so many bytes on, instead of by the predicted times. deadline: least seconds without a sign of a
    peer's life after which it is given up.
    """

    topology: Topology | str | None = None
    plans: LivePlans | tuple[str, ...] | None = None
    transport: str = "streams"
    interface: str | None = None
    strict: bool = False
    pace: bool = True
    threshold_bytes: int | None = None
    deadline: float = 5.0

    def __post_init__(self) -> None:
        if not isinstance(self.topology, Topology | str | None):
            raise PlansError(f"topology is a {type(self.topology).__name__}; give a Topology, or its file as text")
        if not isinstance(self.plans, LivePlans | tuple | None):
            raise PlansError(f"plans is a {type(self.plans).__name__}; give LivePlans, or a tuple of file names")
        if self.transport not in TRANSPORTS:
            raise PlansError(f"{self.transport!r} is no transport; take {' or '.join(TRANSPORTS)}")
        if self.threshold_bytes is not None and self.threshold_bytes < 0:
            raise PlansError(f"threshold_bytes is {self.threshold_bytes}; give zero or more bytes")
        if not self.deadline > 0:
            raise PlansError(f"the deadline is {self.deadline} s; give more than zero")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> PlannedOptions:
        """What the environment variables above say. Raises PlansError where one makes no sense."""
        files = [path for path in environment.get("COMM_PLANS_PLAN", "").split(os.pathsep) if path]
        strict = environment.get("COMM_PLANS_STRICT", "")
        if strict not in SWITCHED:
            raise PlansError(f"COMM_PLANS_STRICT is {strict!r}; set it to 0 or 1")
        return cls(
            topology=environment.get("COMM_PLANS_TOPOLOGY") or None,
            plans=tuple(files) or None,
            transport=environment.get("COMM_PLANS_TRANSPORT") or "streams",
            interface=environment.get("COMM_PLANS_INTERFACE") or None,
            strict=SWITCHED[strict],
        )
