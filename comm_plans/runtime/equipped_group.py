"""What every collective of a planned group needs: its transport and inner group, counters, and one end for all.

A call goes by a program or is handed to the inner group; both are counted, and after a failure both are refused.
"""

# mypy: disable-error-code="override, assignment"
# torch's stubs list the forms of a call that no caller of a group's methods uses.
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from comm_plans.errors import PlansError
from comm_plans.live import LivePlans
from comm_plans.runtime.calls import Call
from comm_plans.runtime.counters import Counters
from comm_plans.runtime.options import PlannedOptions
from comm_plans.runtime.program import RankProgram
from comm_plans.runtime.routes import Routes
from comm_plans.runtime.transport import Job, Transport, TransportError
from comm_plans.runtime.work import PlannedWork

PASSED_ON = (
    "all_to_all_single",
    "allgather_coalesced",
    "alltoall",
    "alltoall_base",
    "barrier",
    "gather",
    "monitored_barrier",
    "recv",
    "recv_anysource",
    "scatter",
    "send",
)


@dataclass(frozen=True)
class Equipment:
    """What a group needs to go by plan. settle: makes all ranks settle on rank 0's plans; raises PlansError if not."""

    options: PlannedOptions
    transport: Transport
    settle: Callable[[LivePlans | None], Routes]


class EquippedGroup(dist.ProcessGroup):
    """A group that can go by plan, before torch's forms of collectives. `rule` says in words what does."""

    def __init__(self, rank: int, world_size: int) -> None:
        super().__init__(rank, world_size)  # type: ignore[call-arg]  # the form for classes in Python
        self._rank, self._ranks = rank, world_size
        self._counters = Counters()
        self._failure: TransportError | None = None
        self._met: set[str] = set()

    def equip(self, inner: dist.ProcessGroup, routes: Routes, equipment: Equipment | None) -> None:
        """Give it what it works with; without equipment nothing goes by plan."""
        self._inner, self._routes, self._equipment = inner, routes, equipment

    @property
    def plans(self) -> LivePlans | None:
        """The plans that calls go by."""
        return self._routes.plans

    @property
    def options(self) -> PlannedOptions | None:
        """How its data moves, with the plans of today; None where nothing goes by plan."""
        return replace(self._equipment.options, plans=self.plans) if self._equipment else None

    def replace_plans(self, plans: LivePlans | None = None) -> None:
        """Go by rank 0's `plans` from now on. Every rank calls this between the same two collectives.

        Raises PlansError on every rank, and keeps the old plans, where the new ones are of no use.
        """
        self._check()
        if self._equipment is None:
            raise PlansError("this process group has no plans that could be replaced; name a topology when it is made")
        routes = self._equipment.settle(plans)
        for program in self._routes.programs_not_in(routes):
            self._equipment.transport.release(program)
        self._routes = routes

    def go_by_plan_from(self, size_bytes: int | None) -> None:
        """Take plans for full buffers of so many bytes on, from now on; None: take none.

        Every rank calls this, with the same number, between the same two collectives.
        """
        self._routes = self._routes.taken_from(size_bytes)

    @property
    def rule(self) -> str:
        """From how many bytes each collective goes by plan, and the predicted times behind that; a line each."""
        return self._routes.rule

    def counters(self) -> dict[str, dict[str, Any]]:
        """Planned and other calls and bytes, predicted and measured seconds of planned ones, by collective."""
        return self._counters.document()

    def reset_counters(self) -> None:
        """Count from nothing again."""
        self._counters.reset()

    def getBackendName(self) -> str:  # noqa: N802 - torch's name
        """`planned`."""
        return "planned"

    def shutdown(self) -> None:
        """End the transport's threads and connections and the inner group."""
        self._failure = self._failure or TransportError("the process group was destroyed; make it anew")
        if self._equipment:
            self._equipment.transport.close(str(self._failure))
        self._inner.shutdown()

    def abort(self) -> None:
        """Give up at once."""
        self.shutdown()

    def _go(self, program: RankProgram, call: Call) -> dist.Work:
        assert self._equipment
        self._check()
        self._meet(program)
        size_bytes = call.buffer.nbytes
        self._counters.planned(program.collective, size_bytes)
        job = self._equipment.transport.submit(program, call.buffer)
        job.add_done_callback(lambda job: self._ended(job, program, size_bytes))
        return PlannedWork(job, call.finish)

    def _meet(self, program: RankProgram) -> None:
        """Come together for a program's first use: each rank hears from each other one, and so of one that is gone.

        Transports meet in the store, where a rank that never comes would be waited for.
        """
        if program.digest in self._met:
            return
        try:
            self._inner.alltoall_base(torch.zeros(self._ranks), torch.zeros(self._ranks), [], []).wait()
        except RuntimeError as error:
            gone = f"a rank did not come to the first {program.collective}; look at the others' output for the cause"
            self._failure = TransportError(gone)
            raise self._failure from error
        self._met.add(program.digest)

    def _ended(self, job: Job, program: RankProgram, size_bytes: int) -> None:
        if job.error:
            self._failure = self._failure or job.error
        else:
            self._counters.ended(program.collective, program.seconds(size_bytes), job.seconds)

    def _other(self, collective: str, moved: Any, call: Callable[..., dist.Work], *arguments: Any) -> dist.Work:
        self._check()
        self._counters.other(collective, bytes_of(moved))
        return call(*arguments)

    def _check(self) -> None:
        if self._failure:
            raise TransportError(f"the process group has failed ({self._failure}); destroy it and make it anew")


def _passed_on(name: str) -> Callable[..., Any]:
    def passed_on(self: EquippedGroup, *arguments: Any, **named: Any) -> Any:
        return self._other(name, arguments, lambda: getattr(self._inner, name)(*arguments, **named))

    passed_on.__doc__ = f"`{name}` of the inner group."
    return passed_on


def bytes_of(moved: Any) -> int:
    """Bytes of all tensors in nested lists."""
    if isinstance(moved, Tensor):
        return moved.nbytes
    return sum(map(bytes_of, moved)) if isinstance(moved, list | tuple) else 0


for _name in PASSED_ON:
    setattr(EquippedGroup, _name, _passed_on(_name))
