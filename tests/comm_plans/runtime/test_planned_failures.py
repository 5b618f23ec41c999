"""A planned group when a rank dies, hangs or lags: an error for whoever waits, never wrong data, and a way on."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from dataclasses import replace
from datetime import timedelta

import pytest
import torch
import torch._dynamo  # which DDP loads: so it is loaded once and not on every rank
from live_ranks import open_files, run_ranks
from planned_ranks import NETWORKS, on, planned, slow_plans
from torch import distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from comm_plans.live import LivePlans
from comm_plans.runtime import PlannedOptions, TransportError

TRANSPORTS = ["streams", pytest.param("p2p", marks=pytest.mark.slow)]
SLOW = 2_500_000  # elements that take about a second where the plan is paced


def made(store: dist.Store, rank: int, options: PlannedOptions) -> None:
    """The default group, left to the end of the process."""
    limit = timedelta(seconds=30)
    dist.init_process_group("planned", store=store, rank=rank, world_size=8, pg_options=options, timeout=limit)


def reduces_until_the_end(
    rank: int, store: dist.Store, options: PlannedOptions, size: int, how: signal.Signals
) -> tuple[str, float]:
    made(store, rank, options)
    dist.all_reduce(torch.ones(1000))
    tensor = torch.full((size,), float(rank))
    if rank == 2 and how == signal.SIGSTOP:
        os.kill(os.getpid(), how)
    work = dist.all_reduce(tensor, async_op=True)
    if rank == 2:
        time.sleep(0.05)
        os.kill(os.getpid(), how)
    begun = time.monotonic()
    with pytest.raises(RuntimeError) as caught:
        work.wait()
    passed = time.monotonic() - begun
    assert not work.is_success()
    assert work.exception() is not None
    for again in (lambda: dist.all_reduce(torch.ones(5)), dist.barrier, lambda: dist.broadcast_object_list([1])):
        with pytest.raises(TransportError, match="destroy it and make it anew"):
            again()
    dist.destroy_process_group()
    return str(caught.value), passed


def options_for(transport: str, plans: LivePlans) -> PlannedOptions:
    """Paced only where the transport paces; the other one is slow enough by itself."""
    return replace(on(NETWORKS[8], transport), topology=None, plans=plans, pace=True, deadline=1.5)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_killed_rank_is_an_error_everywhere(transport: str) -> None:
    options = options_for(transport, slow_plans())
    results = run_ranks(8, reduces_until_the_end, options, SLOW, signal.SIGKILL, lost={2})
    for message, seconds in results[:2] + results[3:]:
        assert "rank" in message
        assert seconds < 5


def comes_alone(rank: int, store: dist.Store, options: PlannedOptions) -> tuple[str, float]:
    made(store, rank, options)
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    begun = time.monotonic()
    with pytest.raises(RuntimeError) as caught:
        dist.all_reduce(torch.ones(1000))
    dist.destroy_process_group()
    return str(caught.value), time.monotonic() - begun


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_rank_that_dies_before_the_first_collective_is_not_waited_for(transport: str) -> None:
    results = run_ranks(8, comes_alone, options_for(transport, slow_plans()), lost={2})
    for message, seconds in results[:2] + results[3:]:
        assert message == "a rank did not come to the first all_reduce; look at the others' output for the cause"
        assert seconds < 10


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_stopped_rank_is_an_error_at_the_deadline(transport: str) -> None:
    options = options_for(transport, slow_plans())
    results = run_ranks(8, reduces_until_the_end, options, 1000, signal.SIGSTOP, lost={2})
    for _, seconds in results[:2] + results[3:]:
        assert seconds < 15


def trains_until_the_end(rank: int, store: dist.Store, transport: str) -> str:
    made(store, rank, on(NETWORKS[8], transport))
    model = DistributedDataParallel(nn.Sequential(*(nn.Linear(300, 300) for _ in range(4))), bucket_cap_mb=0.1)
    for _ in range(2):  # DDP changes its buckets after the first one
        model(torch.ones(2, 300)).sum().backward()
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    loss = model(torch.ones(2, 300)).sum()
    with pytest.raises(RuntimeError) as caught:
        loss.backward()
    with pytest.raises(RuntimeError):
        model(torch.ones(2, 300)).sum().backward()
    return str(caught.value)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_killed_rank_is_an_error_in_the_backward_pass(transport: str) -> None:
    results = run_ranks(8, trains_until_the_end, transport, lost={2})
    assert all("rank" in message for message in results[:2] + results[3:])


def lags(rank: int, store: dist.Store, transport: str) -> None:
    with planned(store, rank, 4, replace(on(NETWORKS[4], transport), deadline=1.5)):
        dist.all_reduce(torch.ones(1000))
        if rank == 1:
            time.sleep(3.0)  # twice the deadline for a silent peer
        tensor = torch.ones(1000)
        dist.all_reduce(tensor)
        assert tensor.eq(4).all()


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_rank_that_lags_behind_is_waited_for(transport: str) -> None:
    run_ranks(4, lags, transport)


def waits_with_a_limit(rank: int, store: dist.Store) -> None:
    with planned(store, rank, 4, on(NETWORKS[4])):
        dist.all_reduce(torch.ones(1000))
        if rank == 1:
            time.sleep(1.0)
        tensor = torch.ones(1000)
        work = dist.all_reduce(tensor, async_op=True)
        if rank != 1:
            with pytest.raises(RuntimeError, match=r"has not ended after 0\.1 s"):
                work.wait(timedelta(seconds=0.1))
        assert work.wait()
        assert tensor.eq(4).all()


def test_a_wait_may_be_limited() -> None:
    run_ranks(4, waits_with_a_limit)


def made_again(rank: int, store: dist.Store, transport: str) -> None:
    counts = []
    for number in range(4):
        with planned(store, rank, 3, on(NETWORKS[3], transport), prefix=f"attempt{number}"):
            tensor = torch.full((10_000,), float(rank))
            dist.all_reduce(tensor)
            assert tensor.eq(3).all()
        gc.collect()
        counts.append((open_files(), threading.active_count()))
    assert counts[1] == counts[2] == counts[3]


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_destroyed_group_leaves_nothing_behind_and_can_be_made_again(transport: str) -> None:
    run_ranks(3, made_again, transport)
