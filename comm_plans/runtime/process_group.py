"""The process group: what a plan does faster goes by plan, everything else by the inner group.

torch asks a group for collectives by the methods below; those that a plan can do are written out, all others are
passed on. Whether a call goes by plan depends only on what is equal on all ranks.
"""

# mypy: disable-error-code="override, assignment"
# torch's stubs list the forms of a call that no caller of a group's methods uses.
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import (
    AllgatherOptions,
    AllreduceCoalescedOptions,
    AllreduceOptions,
    ReduceScatterOptions,
)

from comm_plans.errors import PlansError
from comm_plans.live import LivePlans
from comm_plans.runtime import calls
from comm_plans.runtime.calls import Call
from comm_plans.runtime.counters import Counters
from comm_plans.runtime.options import PlannedOptions
from comm_plans.runtime.program import RankProgram
from comm_plans.runtime.routes import Routes
from comm_plans.runtime.transport import Job, Transport, TransportError
from comm_plans.runtime.work import PlannedWork

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.uint8, torch.int8, torch.int32, torch.int64)  # those that gloo adds up too
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


class PlannedGroup(dist.ProcessGroup):
    """The backend `planned`. `options` are those it was made with, `rule` says in words what goes by plan."""

    def __init__(self, rank: int, world_size: int) -> None:
        super().__init__(rank, world_size)  # type: ignore[call-arg]  # the form for classes in Python
        self._rank, self._ranks = rank, world_size
        self._counters = Counters()
        self._failure: TransportError | None = None

    def equip(self, inner: dist.ProcessGroup, routes: Routes, equipment: Equipment | None) -> None:
        """Give it what it works with; without equipment nothing goes by plan."""
        self._inner, self._routes, self._equipment = inner, routes, equipment

    @property
    def plans(self) -> LivePlans | None:
        """The plans that calls go by."""
        return self._routes.plans

    @property
    def options(self) -> PlannedOptions | None:
        """How its data moves, None where nothing goes by plan."""
        return self._equipment.options if self._equipment else None

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

    def allreduce(self, tensors: list[Tensor], opts: Any = None) -> dist.Work:
        """Sum or average of one tensor."""
        opts = opts or AllreduceOptions()
        program = self._summed("all_reduce", None, tensors, opts, _bytes(tensors)) if len(tensors) == 1 else None
        if program is None:
            return self._other("all_reduce", tensors, self._inner.allreduce, tensors, opts)
        return self._go(program, calls.all_reduce(tensors, self._divisor(opts)))

    def allreduce_coalesced(self, tensors: list[Tensor], opts: Any = None) -> dist.Work:
        """Sums or averages of several tensors at once."""
        opts = opts or AllreduceCoalescedOptions()
        program = self._summed("all_reduce", None, tensors, opts, _bytes(tensors))
        if program is None:
            return self._other("all_reduce", tensors, self._inner.allreduce_coalesced, tensors, opts)
        return self._go(program, calls.all_reduce(tensors, self._divisor(opts)))

    def broadcast(self, tensors: list[Tensor], opts: Any) -> dist.Work:
        """One tensor of the root's."""
        program = self._moved("broadcast", opts.rootRank, tensors, _bytes(tensors)) if len(tensors) == 1 else None
        if program is None:
            return self._other("broadcast", tensors, self._inner.broadcast, tensors, opts)
        return self._go(program, calls.broadcast(tensors[0]))

    def reduce(self, tensors: list[Tensor], opts: Any) -> dist.Work:
        """Sum or average of one tensor at the root."""
        size = _bytes(tensors)
        program = self._summed("reduce", opts.rootRank, tensors, opts, size) if len(tensors) == 1 else None
        if program is None:
            return self._other("reduce", tensors, self._inner.reduce, tensors, opts)
        at_root = self._rank == opts.rootRank
        return self._go(program, calls.reduce(tensors[0], at_root, self._divisor(opts)))

    def allgather(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None) -> dist.Work:
        """Everybody's tensor, each in a tensor of its own."""
        opts = opts or AllgatherOptions()
        fit = len(inputs) == 1 and {tensor.numel() for tensor in outputs[0]} == {inputs[0].numel()}
        program = self._moved("all_gather", None, [*outputs[0], *inputs], _bytes(outputs[0])) if fit else None
        if program is None:
            return self._other("all_gather", outputs, self._inner.allgather, outputs, inputs, opts)
        return self._go(program, calls.all_gather(outputs[0], inputs[0], self._rank))

    def all_gather_single(self, output: Tensor, tensor: Tensor, opts: Any = None) -> dist.Work:
        """Everybody's tensor, in one."""
        opts = opts or AllgatherOptions()
        fit = self._fit([tensor], [output])
        program = self._moved("all_gather", None, [output, tensor], output.nbytes) if fit else None
        if program is None:
            return self._other("all_gather", output, self._inner.all_gather_single, output, tensor, opts)
        return self._go(program, calls.all_gather_single(output, tensor, self._rank))

    def all_gather_single_coalesced(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> dist.Work:
        """Several of them at once."""
        opts = opts or AllgatherOptions()
        fit = self._fit(inputs, outputs)
        program = self._moved("all_gather", None, [*outputs, *inputs], _bytes(outputs)) if fit else None
        if program is None:
            return self._other("all_gather", outputs, self._inner.all_gather_single_coalesced, outputs, inputs, opts)
        return self._go(program, calls.all_gather_coalesced(outputs, inputs, self._rank, self._ranks))

    def reduce_scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any = None) -> dist.Work:
        """Sum or average of this rank's part; the parts are tensors of their own."""
        opts = opts or ReduceScatterOptions()
        fit = len(outputs) == 1 and {part.numel() for part in inputs[0]} == {outputs[0].numel()}
        tensors = [*outputs, *inputs[0]]
        program = self._summed("reduce_scatter", None, tensors, opts, _bytes(inputs[0])) if fit else None
        if program is None:
            return self._other("reduce_scatter", inputs, self._inner.reduce_scatter, outputs, inputs, opts)
        vector = torch.cat([part.detach().reshape(-1) for part in inputs[0]])
        return self._scattered(program, outputs, [vector], opts)

    def reduce_scatter_single(self, output: Tensor, tensor: Tensor, opts: Any = None) -> dist.Work:
        """Sum or average of this rank's shard."""
        opts = opts or ReduceScatterOptions()
        fit = self._fit([output], [tensor])
        program = self._summed("reduce_scatter", None, [output, tensor], opts, tensor.nbytes) if fit else None
        if program is None:
            return self._other("reduce_scatter", tensor, self._inner.reduce_scatter_single, output, tensor, opts)
        return self._scattered(program, [output], [tensor], opts)

    def reduce_scatter_single_coalesced(
        self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None
    ) -> dist.Work:
        """Several of them at once."""
        opts = opts or ReduceScatterOptions()
        fit = self._fit(outputs, inputs)
        program = self._summed("reduce_scatter", None, [*outputs, *inputs], opts, _bytes(inputs)) if fit else None
        if program is None:
            inner = self._inner.reduce_scatter_single_coalesced
            return self._other("reduce_scatter", inputs, inner, outputs, inputs, opts)
        return self._scattered(program, outputs, inputs, opts)

    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    def shutdown(self) -> None:
        """End the transport's threads and connections and the inner group."""
        self._failure = self._failure or TransportError("the process group was destroyed; make it anew")
        if self._equipment:
            self._equipment.transport.close(str(self._failure))
        self._inner.shutdown()

    def abort(self) -> None:
        """Give up at once."""
        self.shutdown()

    def _scattered(self, program: RankProgram, outputs: list[Tensor], vectors: list[Tensor], opts: Any) -> dist.Work:
        call = calls.reduce_scatter(outputs, vectors, self._rank, self._ranks, self._divisor(opts))
        return self._go(program, call)

    def _summed(
        self, collective: str, root: int | None, tensors: Sequence[Tensor], opts: Any, size_bytes: int
    ) -> RankProgram | None:
        """The program for a reduction that a plan can do: a sum, or the average of floats."""
        kinds = _summands(opts.reduceOp)
        if any(tensor.dtype not in kinds for tensor in tensors):
            return None
        return self._moved(collective, root, tensors, size_bytes)

    def _moved(
        self, collective: str, root: int | None, tensors: Sequence[Tensor], size_bytes: int
    ) -> RankProgram | None:
        """The program for tensors that a transport can take: dense, of one type, in the CPU's memory."""
        same = {(tensor.dtype, tensor.device.type, tensor.layout) for tensor in tensors}
        if len(same) > 1 or any(kind[1:] != ("cpu", torch.strided) for kind in same):
            return None
        return self._routes.program(collective, root, size_bytes)

    def _fit(self, shards: Sequence[Tensor], whole: Sequence[Tensor]) -> bool:
        """Whether each of `whole` holds a shard of every rank."""
        return [shard.numel() * self._ranks for shard in shards] == [each.numel() for each in whole]

    def _divisor(self, opts: Any) -> int:
        return self._ranks if opts.reduceOp == dist.ReduceOp.AVG else 1

    def _go(self, program: RankProgram, call: Call) -> dist.Work:
        assert self._equipment
        self._check()
        size_bytes = call.buffer.nbytes
        self._counters.planned(program.collective, size_bytes)
        job = self._equipment.transport.submit(program, call.buffer)
        job.add_done_callback(lambda job: self._ended(job, program, size_bytes))
        return PlannedWork(job, call.finish)

    def _ended(self, job: Job, program: RankProgram, size_bytes: int) -> None:
        if job.error:
            self._failure = self._failure or job.error
        else:
            self._counters.ended(program.collective, program.seconds(size_bytes), job.seconds)

    def _other(self, collective: str, moved: Any, call: Callable[..., dist.Work], *arguments: Any) -> dist.Work:
        self._check()
        self._counters.other(collective, _bytes(moved))
        return call(*arguments)

    def _check(self) -> None:
        if self._failure:
            raise TransportError(f"the process group has failed ({self._failure}); destroy it and make it anew")


def _passed_on(name: str) -> Callable[..., Any]:
    def passed_on(self: PlannedGroup, *arguments: Any, **named: Any) -> Any:
        return self._other(name, arguments, lambda: getattr(self._inner, name)(*arguments, **named))

    passed_on.__doc__ = f"`{name}` of the inner group."
    return passed_on


def _summands(operation: Any) -> tuple[torch.dtype, ...]:
    """Types that a plan can reduce by this operation, which has to stand on the left of its comparison."""
    if operation == dist.ReduceOp.AVG:
        return FLOATS
    return (*FLOATS, *INTEGERS) if operation == dist.ReduceOp.SUM else ()


def _bytes(moved: Any) -> int:
    """Bytes of all tensors in nested lists."""
    if isinstance(moved, Tensor):
        return moved.nbytes
    return sum(map(_bytes, moved)) if isinstance(moved, list | tuple) else 0


for _name in PASSED_ON:
    setattr(PlannedGroup, _name, _passed_on(_name))
