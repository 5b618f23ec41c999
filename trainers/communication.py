"""Ranks that train together: how they meet, how a model becomes data-parallel, how numbers become equal on all."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from time import perf_counter
from typing import Any, Literal, Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from comm_plans.runtime import PlannedGroup, PlannedOptions
from trainers.frozen import frozen
from trainers.sharding import shards

Backend = Literal["gloo", "nccl"]
_SOME = 2**12  # numbers


def host_store(address: str, world_size: int, timeout: float = 60.0) -> dist.TCPStore:
    """The meeting point, made by rank 0 on a port that the system picks (`.port`), so that no port can be taken.

    address: where the other ranks reach this host. timeout: seconds to wait for them. Doesn't wait here.
    """
    return _store(address, 0, world_size, timeout, is_master=True)


def join_store(address: str, port: int, world_size: int, timeout: float = 60.0) -> dist.TCPStore:
    """The meeting point as every rank but 0 sees it."""
    return _store(address, port, world_size, timeout, is_master=False)


def _store(address: str, port: int, world_size: int, timeout: float, is_master: bool) -> dist.TCPStore:
    limit = timedelta(seconds=timeout)
    return dist.TCPStore(address, port, world_size, is_master, timeout=limit, wait_for_workers=False)


@contextmanager
def process_group(
    store: dist.Store,
    rank: int,
    world_size: int,
    backend: Backend = "gloo",
    timeout: float = 60.0,
    planned: PlannedOptions | None = None,
) -> Iterator[None]:
    """Be `rank` of a group inside the block. timeout: seconds after which a silent peer is an error (RuntimeError).

    planned: how its collectives travel along plans, as far as there are plans for them.
    """
    limit = timedelta(seconds=timeout)
    name = "planned" if planned else backend
    dist.init_process_group(name, store=store, rank=rank, world_size=world_size, timeout=limit, pg_options=planned)
    try:
        yield
    finally:
        dist.destroy_process_group()


def measured_communication() -> dict[str, Any] | None:
    """The group's rule in words, and what it has moved by collective; None where it knows no plan."""
    group = dist.group.WORLD
    return {"rule": group.rule, "rows": group.counters()} if isinstance(group, PlannedGroup) else None


def go_by_plan_from(size_bytes: int | None) -> None:
    """Let the group take its plans for so many bytes on; None: for none. Called on all ranks, whose group has plans."""
    _planned_group().go_by_plan_from(size_bytes)


def trial_sums(sizes: Sequence[int], rounds: int) -> dict[str, list[list[float]]]:
    """Seconds of sums over ranks, "planned" and by the "backend" in turn: for each size in bytes, of each round.

    Called on all ranks, whose group has plans. Nothing is left of it in the group's counters.
    """
    group = _planned_group()
    ways = {"planned": 0, "backend": None}
    for from_bytes in ways.values():  # connections are made
        group.go_by_plan_from(from_bytes)
        dist.all_reduce(torch.zeros(_SOME))
    seconds: dict[str, list[list[float]]] = {way: [] for way in ways}
    for size in sizes:
        taken: dict[str, list[float]] = {way: [] for way in ways}
        for way in [*ways] * rounds:
            group.go_by_plan_from(ways[way])
            taken[way].append(_sum_seconds(size))
        for way in ways:
            seconds[way].append(taken[way])
    group.reset_counters()
    return seconds


def _sum_seconds(size: int) -> float:
    vector = torch.zeros(size // 4)
    dist.barrier()
    begin = perf_counter()
    dist.all_reduce(vector)
    return perf_counter() - begin


def _planned_group() -> PlannedGroup:
    group = dist.group.WORLD
    assert isinstance(group, PlannedGroup)
    return group


class Parallel(Protocol):
    """How a rank goes through its steps together with the others."""

    model: nn.Module
    """What a task's loss is to call."""

    def begin(self, rate: float) -> None:
        """Start a step whose optimizer's rate this is."""

    def summing(self, last: bool) -> AbstractContextManager[None]:
        """Around a forward and backward pass; `last`: of the step, whereupon gradients are averaged over ranks."""

    def end(self, update: Callable[[], None]) -> None:
        """See to it that the optimizer steps; `update` does so, at this rate, once all gradients are averaged."""

    def flush(self) -> None:
        """Wait for all that steps have left under way: weights and optimizer are as after the last one."""

    def close(self) -> None:
        """Leave the model as it was, for another way."""


class InTurn:
    """The backward pass, in which DDP averages gradients if the model is in one, and then the optimizer's step."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def begin(self, rate: float) -> None:
        """Nothing waits."""

    def summing(self, last: bool) -> AbstractContextManager[None]:
        """Keep DDP from averaging what more is added to."""
        if isinstance(self.model, DistributedDataParallel) and not last:
            return self.model.no_sync()
        return nullcontext()

    def end(self, update: Callable[[], None]) -> None:
        """Step."""
        update()

    def flush(self) -> None:
        """Nothing is under way."""

    def close(self) -> None:
        """DDP takes its hooks away when nobody has it any more."""


def average_shards(model: nn.Module) -> None:
    """Let the gradients of sharded parameters, which are sums over all ranks already, be their means. Once a model."""
    for name in shards(model):
        model.get_parameter(name).register_hook(lambda gradient: gradient / dist.get_world_size())


def data_parallel(model: nn.Module) -> DistributedDataParallel:
    """The model with gradients averaged over ranks during the backward pass; weights become rank 0's.

    Sharded parameters are left alone, and frozen ones, which are equal on all ranks as they are.
    """
    device = next(model.parameters()).device
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, [*shards(model), *frozen(model)])
    return DistributedDataParallel(
        model, device_ids=[device.index or 0] if device.type == "cuda" else None, gradient_as_bucket_view=True
    )


def share_buffers(model: nn.Module) -> None:
    """Give every rank rank 0's buffers. Data parallelism does so before a step; this does it after the last one."""
    for buffer in model.buffers():
        dist.broadcast(buffer, src=0)


def sum_over_ranks(values: list[float], device: torch.device) -> list[float]:
    """Sums over all ranks, in float64; equal on every rank, and the values themselves without a process group."""
    if not dist.is_initialized():
        return values
    totals: Tensor = torch.tensor(values, dtype=torch.float64, device=device)
    dist.all_reduce(totals)
    summed: list[float] = totals.tolist()
    return summed
