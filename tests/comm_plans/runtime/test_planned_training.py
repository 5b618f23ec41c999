"""DDP and FSDP2, unchanged, train on planned groups to what they train to on gloo."""

from __future__ import annotations

import pytest
import torch
import torch._dynamo  # which DDP loads: so it is loaded once and not on every rank
from live_ranks import run_ranks
from planned_ranks import NETWORKS, on, planned
from torch import Tensor, nn
from torch import distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

STEPS = 4
WIDTH = 64


def model(exact: bool) -> nn.Module:
    torch.manual_seed(0)
    made = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 3))
    if exact:  # small whole numbers, in which every sum and mean is exact
        for parameter in made.parameters():
            parameter.data = torch.randint_like(parameter, -1, 2)
    return made


def steps(made: nn.Module, exact: bool) -> None:
    """Gradients of one batch a step, different on every rank."""
    generator = torch.Generator().manual_seed(dist.get_rank())
    optimizer = torch.optim.SGD(made.parameters(), lr=2.0**-10 if exact else 0.1)
    for _ in range(1 if exact else STEPS):
        batch = torch.randint(-2, 3, (8, WIDTH), generator=generator).float()
        loss = made(batch).sum() if exact else made(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def ddp(group: dist.ProcessGroup, exact: bool) -> Tensor:
    made = model(exact)
    steps(DistributedDataParallel(made, process_group=group, bucket_cap_mb=0.01), exact)
    return torch.cat([parameter.detach().flatten() for parameter in made.parameters()])


def fsdp(group: dist.ProcessGroup, exact: bool) -> Tensor:
    made, mesh = model(exact), DeviceMesh.from_group(group, "cpu")
    for layer in made:
        fully_shard(layer, mesh=mesh)
    steps(fully_shard(made, mesh=mesh), exact)
    return torch.cat([parameter.to_local().detach().flatten() for parameter in made.parameters()])


def train(rank: int, store: dist.Store, world: int, transport: str) -> dict:
    with planned(store, rank, world, on(NETWORKS[world], transport)) as group:
        gloo = dist.new_group(backend="gloo")
        for method in (ddp, fsdp):
            assert torch.equal(method(group, exact=True), method(gloo, exact=True)), method
            torch.testing.assert_close(
                method(group, exact=False), method(gloo, exact=False), rtol=0, atol=1e-6, msg=str(method)
            )
        return group.counters()


@pytest.mark.parametrize("transport", ["streams", "p2p"])
@pytest.mark.parametrize("world", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_weights_are_those_of_gloo(world: int, transport: str) -> None:
    for counters in run_ranks(world, train, world, transport):
        for collective in ("all_reduce", "all_gather", "reduce_scatter", "broadcast"):
            assert counters[collective]["planned_calls"] > 0
        assert counters["all_reduce"]["planned_calls"] > STEPS + 1  # several buckets a step


def low_precision(rank: int, store: dist.Store) -> None:
    with planned(store, rank, 4, on(NETWORKS[4])) as group:
        made = model(exact=False).to(torch.bfloat16)
        wrapped = DistributedDataParallel(made, process_group=group)
        wrapped(torch.ones(2, WIDTH, dtype=torch.bfloat16)).sum().backward()
        assert group.counters()["all_reduce"]["planned_calls"] == 1
        before = [parameter.grad.clone() for parameter in made.parameters()]
        for own, gradient in zip(before, (parameter.grad for parameter in made.parameters()), strict=True):
            dist.broadcast(own, 0)
            assert torch.equal(own, gradient)


def test_gradients_of_low_precision_are_equal_on_all_ranks() -> None:
    run_ranks(4, low_precision)
