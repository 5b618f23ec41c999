"""What it takes to make one group: options, plans that all ranks settle on, and a transport."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist

from comm_plans.errors import PlanError, PlansError
from comm_plans.live import LivePlans, check_world_size
from comm_plans.runtime.agreement import Meeting
from comm_plans.runtime.costs import P2P, STREAMS
from comm_plans.runtime.equipped_group import Equipment
from comm_plans.runtime.options import PlannedOptions
from comm_plans.runtime.p2p import P2PTransport
from comm_plans.runtime.routes import Routes
from comm_plans.runtime.settlement import Told, agreed, handed_out, settle
from comm_plans.runtime.streams import StreamTransport
from comm_plans.runtime.streams.address import data_address
from comm_plans.runtime.transport import Transport

COSTS = {"streams": STREAMS, "p2p": P2P}


class Founding:
    """The making of a group. about: torch's description of it; options: those given, else the environment's."""

    def __init__(self, about: Any, options: PlannedOptions | None) -> None:
        self._store, self._timeout = dist.PrefixStore("planned", about.store), about.timeout
        self._rank, self._world_size = about.group_rank, about.group_size
        self._given = options
        self._options = PlannedOptions(strict=True)  # words that make no sense are an error in any case
        self._meeting = Meeting(dist.PrefixStore("settlement", self._store), self._rank, self._world_size)

    def routes(self) -> Routes:
        """This rank's routes; none, with the reason, where ranks cannot settle and none of them is strict.

        Raises PlansError on every rank where one of them is.
        """
        try:
            return settle(self._meeting, self._world_size, self._told, self._lowered)
        except PlansError as error:
            if any(self._meeting.statements(self._options.strict)):
                raise
            return Routes.none(str(error))

    def equipment(self) -> Equipment:
        """The transport, and the way to settle on other plans later."""
        return Equipment(self._options, self._transport(), self._settle_again)

    def _told(self) -> Told:
        self._options = self._given or PlannedOptions.from_environment()
        return Told.of(self._options)

    def _lowered(self, told: Told, plans: LivePlans) -> Routes:
        data_address(self._store, told.options.interface)
        return Routes.of(plans, self._rank, COSTS[told.options.transport], told.options.threshold_bytes)

    def _settle_again(self, plans: LivePlans | None) -> Routes:
        hand = handed_out(self._meeting, lambda: self._fitting(plans))
        assert hand
        return agreed(self._meeting, lambda: self._lowered(Told(self._options, None), hand()))

    def _fitting(self, plans: LivePlans | None) -> LivePlans:
        if plans is None:
            raise PlanError("rank 0 gave no new plans; pass them to replace_plans there")
        check_world_size(plans.topology, self._world_size)
        return plans

    def _transport(self) -> Transport:
        options = self._options
        store = dist.PrefixStore(options.transport, self._store)
        patience = {"deadline": options.deadline, "timeout": self._timeout.total_seconds()}
        if options.transport == "streams":
            return StreamTransport(store, interface=options.interface, pace=options.pace, **patience)
        return P2PTransport(store, interface=options.interface, **patience)
