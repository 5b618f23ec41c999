"""What a rank does in the lab: makes the groups, then times each way to do a collective in turn, again and again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from time import perf_counter

import torch
from torch import distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from comm_plans.live import LivePlans
from comm_plans.runtime import PlannedOptions

FLOAT = 4  # bytes
HIDDEN = 448  # of an MLP of 2.5 million parameters
BUCKET_MB = 2
Samples = dict[tuple[str, str, int], list[float]]
Groups = dict[str, dist.ProcessGroup]


def time_collectives(
    rank: int, plans: Mapping[str, LivePlans], collectives: tuple[str, ...], sizes: tuple[int, ...], repeats: int
) -> Samples:
    """Seconds of this rank by collective, way and size; ways are gloo and those that `plans` names.

    A way's name begins with its transport, `streams` or `p2p`.
    """
    samples: Samples = {}
    with groups(plans) as ways:
        for repeat in range(repeats + 1):
            for collective in collectives:
                for size in sizes if repeat else (sizes[0] // 16,):  # the first round makes the connections
                    for way, group in ways.items():
                        if way == "gloo" or any(plan.collective == collective for plan in plans[way].plans):
                            seconds = timed(collective, group, size)
                            if repeat:
                                samples.setdefault((collective, way, size), []).append(seconds)
    return samples


def time_steps(rank: int, plans: Mapping[str, LivePlans], repeats: int) -> dict[str, list[float]]:
    """Seconds of a training step under DDP by way; two steps come before, in which DDP settles on its buckets."""
    samples: dict[str, list[float]] = {}
    with groups(plans) as ways:
        models = {way: DistributedDataParallel(mlp(), process_group=ways[way], bucket_cap_mb=BUCKET_MB) for way in ways}
        for model in models.values():
            steps(model, 2)
        for _ in range(repeats):
            for way, model in models.items():
                dist.barrier()
                samples.setdefault(way, []).append(steps(model, 1))
    return samples


@contextmanager
def groups(plans: Mapping[str, LivePlans]) -> Iterator[Groups]:
    """gloo, and a planned group for each of `plans`, by which everything goes that it can do."""
    os.environ["TORCH_CPP_LOG_LEVEL"] = "ERROR"  # hosts of the lab have no names, which c10d remarks on
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=300))
    made: Groups = {"gloo": dist.group.WORLD}
    options = PlannedOptions(threshold_bytes=0, strict=True, deadline=60)
    for way, own in plans.items():
        transport = way.split()[0]
        made[way] = dist.new_group(backend="planned", pg_options=replace(options, plans=own, transport=transport))
    try:
        yield made
    finally:
        dist.destroy_process_group()


def timed(collective: str, group: dist.ProcessGroup, size: int) -> float:
    """Seconds of one collective whose full buffer has `size` bytes; its result is checked."""
    call, check = prepared(collective, group, size // FLOAT)
    dist.barrier()
    begun = perf_counter()
    call()
    seconds = perf_counter() - begun
    assert check(), collective
    return seconds


def prepared(collective: str, group: dist.ProcessGroup, elements: int) -> tuple[Callable[[], None], Callable[[], bool]]:
    """The call, and whether its result is right."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    shard = torch.full((elements // ranks,), float(rank))
    total = ranks * (ranks - 1) / 2
    if collective == "all_gather":
        whole = torch.empty(len(shard) * ranks)
        right = torch.arange(ranks).repeat_interleave(len(shard))
        return lambda: dist.all_gather_single(whole, shard, group=group), lambda: torch.equal(whole, right.float())
    if collective == "reduce_scatter":
        whole = torch.full((len(shard) * ranks,), float(rank))
        return lambda: dist.reduce_scatter_single(shard, whole, group=group), lambda: bool(shard.eq(total).all())
    vector = torch.full((elements,), float(rank))
    return lambda: dist.all_reduce(vector, group=group), lambda: bool(vector.eq(total).all())


def mlp() -> nn.Module:
    """A model whose gradients have about 10 MB."""
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(HIDDEN, HIDDEN), nn.ReLU()) for _ in range(12)]
    return nn.Sequential(*layers, nn.Linear(HIDDEN, 10))


def steps(model: nn.Module, count: int) -> float:
    """Seconds that so many steps take."""
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batch = torch.ones(8, HIDDEN)
    begun = perf_counter()
    for _ in range(count):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
    return perf_counter() - begun
