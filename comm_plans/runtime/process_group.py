"""The process group: what a plan does faster goes by plan, everything else by the inner group.

torch asks a group for collectives by the methods below; those that no plan does are passed on by its base class.
Whether a call goes by plan depends only on what is equal on all ranks.
"""

# mypy: disable-error-code="override, assignment"
# torch's stubs list the forms of a call that no caller of a group's methods uses.
from __future__ import annotations

from collections.abc import Sequence
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

from comm_plans.runtime import calls
from comm_plans.runtime.equipped_group import EquippedGroup, bytes_of
from comm_plans.runtime.program import RankProgram

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INTEGERS = (torch.uint8, torch.int8, torch.int32, torch.int64)  # those that gloo adds up too


class PlannedGroup(EquippedGroup):
    """The backend `planned`."""

    def allreduce(self, tensors: list[Tensor], opts: Any = None) -> dist.Work:
        """Sum or average of one tensor."""
        opts = opts or AllreduceOptions()
        program = self._summed("all_reduce", None, tensors, opts, bytes_of(tensors)) if len(tensors) == 1 else None
        if program is None:
            return self._other("all_reduce", tensors, self._inner.allreduce, tensors, opts)
        return self._go(program, calls.all_reduce(tensors, self._divisor(opts)))

    def allreduce_coalesced(self, tensors: list[Tensor], opts: Any = None) -> dist.Work:
        """Sums or averages of several tensors at once."""
        opts = opts or AllreduceCoalescedOptions()
        program = self._summed("all_reduce", None, tensors, opts, bytes_of(tensors))
        if program is None:
            return self._other("all_reduce", tensors, self._inner.allreduce_coalesced, tensors, opts)
        return self._go(program, calls.all_reduce(tensors, self._divisor(opts)))

    def broadcast(self, tensors: list[Tensor], opts: Any) -> dist.Work:
        """One tensor of the root's."""
        program = self._moved("broadcast", opts.rootRank, tensors, bytes_of(tensors)) if len(tensors) == 1 else None
        if program is None:
            return self._other("broadcast", tensors, self._inner.broadcast, tensors, opts)
        return self._go(program, calls.broadcast(tensors[0]))

    def reduce(self, tensors: list[Tensor], opts: Any) -> dist.Work:
        """Sum or average of one tensor at the root."""
        size = bytes_of(tensors)
        program = self._summed("reduce", opts.rootRank, tensors, opts, size) if len(tensors) == 1 else None
        if program is None:
            return self._other("reduce", tensors, self._inner.reduce, tensors, opts)
        at_root = self._rank == opts.rootRank
        return self._go(program, calls.reduce(tensors[0], at_root, self._divisor(opts)))

    def allgather(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None) -> dist.Work:
        """Everybody's tensor, each in a tensor of its own."""
        opts = opts or AllgatherOptions()
        fit = len(inputs) == 1 and {tensor.numel() for tensor in outputs[0]} == {inputs[0].numel()}
        program = self._moved("all_gather", None, [*outputs[0], *inputs], bytes_of(outputs[0])) if fit else None
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
        program = self._moved("all_gather", None, [*outputs, *inputs], bytes_of(outputs)) if fit else None
        if program is None:
            return self._other("all_gather", outputs, self._inner.all_gather_single_coalesced, outputs, inputs, opts)
        return self._go(program, calls.all_gather_coalesced(outputs, inputs, self._rank, self._ranks))

    def reduce_scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any = None) -> dist.Work:
        """Sum or average of this rank's part; the parts are tensors of their own."""
        opts = opts or ReduceScatterOptions()
        fit = len(outputs) == 1 and {part.numel() for part in inputs[0]} == {outputs[0].numel()}
        tensors = [*outputs, *inputs[0]]
        program = self._summed("reduce_scatter", None, tensors, opts, bytes_of(inputs[0])) if fit else None
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
        program = self._summed("reduce_scatter", None, [*outputs, *inputs], opts, bytes_of(inputs)) if fit else None
        if program is None:
            inner = self._inner.reduce_scatter_single_coalesced
            return self._other("reduce_scatter", inputs, inner, outputs, inputs, opts)
        return self._scattered(program, outputs, inputs, opts)

    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

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


def _summands(operation: Any) -> tuple[torch.dtype, ...]:
    """Types that a plan can reduce by this operation, which has to stand on the left of its comparison."""
    if operation == dist.ReduceOp.AVG:
        return FLOATS
    return (*FLOATS, *INTEGERS) if operation == dist.ReduceOp.SUM else ()
