"""Every form in which torch asks for a collective gives gloo's own result when it goes by plan, or goes to gloo."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
import torch
from live_ranks import run_ranks
from planned_ranks import NETWORKS, on, planned
from torch import Tensor
from torch import distributed as dist

TRANSPORTS = ["streams", "p2p"]
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int32, torch.int64, torch.uint8, torch.int8]
SUM, AVG = dist.ReduceOp.SUM, dist.ReduceOp.AVG
ROOT = 1

Form = Callable[[dist.ProcessGroup, int, torch.dtype], list[Tensor]]


def numbers(size: int, dtype: torch.dtype) -> Tensor:
    """Whole numbers so small that their sums over 8 ranks are exact in every type."""
    generator = torch.Generator().manual_seed(1000 * size + dist.get_rank())
    return torch.randint(0, 16, (size,), generator=generator).to(dtype)


def all_reduce(group: dist.ProcessGroup, size: int, dtype: torch.dtype) -> list[Tensor]:
    tensor = numbers(size, dtype)
    dist.all_reduce(tensor, group=group)
    return [tensor]


def of_columns(group: dist.ProcessGroup, size: int, dtype: torch.dtype) -> list[Tensor]:
    tensors = numbers(4 * size, dtype).view(2, -1)
    dist.all_reduce(tensors.t(), group=group)
    dist.broadcast(tensors.t(), ROOT, group=group)
    return [tensors]


def averages(group: dist.ProcessGroup, size: int, dtype: torch.dtype) -> list[Tensor]:
    """Multiples of the world size, whose averages are exact."""
    whole, shard = numbers(size * group.size(), dtype) * group.size(), numbers(size, dtype)
    dist.reduce_scatter_single(shard, whole, AVG, group=group)
    dist.all_reduce(whole, AVG, group=group)
    return [whole, shard]


def rooted(group: dist.ProcessGroup, size: int, dtype: torch.dtype) -> list[Tensor]:
    results = []
    for root in (0, group.size() - 1):
        sent, summed = numbers(size, dtype), numbers(size, dtype)
        dist.broadcast(sent, root, group=group)
        dist.reduce(summed, root, group=group)
        results += [sent, summed if group.rank() == root else sent]
    return results


def all_gathers(group: dist.ProcessGroup, size: int, dtype: torch.dtype) -> list[Tensor]:
    own = numbers(size, dtype)
    each = [torch.empty_like(own) for _ in range(group.size())]
    together = own.new_empty(group.size() * size)
    dist.all_gather(each, own, group=group)
    dist.all_gather_single(together, own, group=group)
    return [*each, together]


def in_place(group: dist.ProcessGroup, size: int, dtype: torch.dtype) -> list[Tensor]:
    together = numbers(size * group.size(), dtype)
    dist.all_gather_single(together, together[group.rank() * size :][:size], group=group)
    return [together]


def reduce_scatters(group: dist.ProcessGroup, size: int, dtype: torch.dtype) -> list[Tensor]:
    whole, one, other = numbers(size * group.size(), dtype), numbers(size, dtype), numbers(size, dtype)
    before = whole.clone()
    dist.reduce_scatter(one, list(whole.chunk(group.size())), group=group)
    dist.reduce_scatter_single(other, whole, group=group)
    assert torch.equal(whole, before)
    return [one, other]


SUMMING: list[Form] = [all_reduce, of_columns, rooted, all_gathers, in_place, reduce_scatters]


def compare(rank: int, store: dist.Store, world: int, transport: str) -> dict:
    with planned(store, rank, world, on(NETWORKS[world], transport)) as group:
        gloo = dist.new_group(backend="gloo")
        cases = [*product(SUMMING, [*FLOATS, *INTEGERS]), *product([averages], FLOATS)]
        for (form, dtype), size in product(cases, [1, 1001]):
            for ours, theirs in zip(form(group, size, dtype), form(gloo, size, dtype), strict=True):
                assert torch.equal(ours, theirs), (form.__name__, dtype, size)
        return group.counters()


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("world", [2, 4, *(pytest.param(world, marks=pytest.mark.slow) for world in (3, 8))])
def test_results_are_gloos(world: int, transport: str) -> None:
    counters = run_ranks(world, compare, world, transport)
    assert counters[0].keys() == {"all_gather", "all_reduce", "broadcast", "reduce", "reduce_scatter"}
    for count in (count for rank in counters for count in rank.values()):
        assert count["planned_calls"] > 0
        assert count["other_calls"] == 0
        assert count["measured_seconds"] > 0


def coalesced(rank: int, store: dist.Store, transport: str) -> None:
    with planned(store, rank, 3, on(NETWORKS[3], transport)) as group:
        sizes = [5, 1, 300]
        sums = [torch.full((2, size), float(rank)) for size in sizes]
        with dist._coalescing_manager():
            for tensor in sums:
                dist.all_reduce(tensor, AVG)
        wholes = [torch.full((3 * size,), -1.0) for size in sizes]
        with dist._coalescing_manager(async_ops=True) as manager:
            for whole, own in zip(wholes, sums, strict=True):
                dist.all_gather_single(whole, own[0] + rank)
        manager.wait()
        shards = [torch.empty(size) for size in sizes]
        with dist._coalescing_manager():
            for shard, whole in zip(shards, wholes, strict=True):
                dist.reduce_scatter_single(shard, whole)
        assert all(tensor.eq(1).all() for tensor in sums)
        assert all(whole.view(3, -1)[peer].eq(1 + peer).all() for whole in wholes for peer in range(3))
        assert all(shard.eq(3 * (1 + rank)).all() for shard in shards)
        assert {name: count["planned_calls"] for name, count in group.counters().items()} == {
            "all_reduce": 1,
            "all_gather": 1,
            "reduce_scatter": 1,
        }


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_coalesced_calls_move_together(transport: str) -> None:
    run_ranks(3, coalesced, transport)


def others(rank: int, store: dist.Store) -> None:
    """What no plan does is gloo's, whichever group is asked."""
    with planned(store, rank, 3, on(NETWORKS[3])) as group:
        smallest = torch.tensor([float(rank), 5.0])
        dist.all_reduce(smallest, dist.ReduceOp.MIN)
        assert smallest.tolist() == [0, 5]
        product_of_all = torch.tensor([rank + 1])
        dist.all_reduce(product_of_all, dist.ReduceOp.PRODUCT)
        assert product_of_all.item() == 6
        dist.barrier()
        said: list = [None] * 3
        dist.all_gather_object(said, {"rank": rank})
        assert said == [{"rank": peer} for peer in range(3)]
        heard = [said if rank == 2 else None]
        dist.broadcast_object_list(heard, src=2)
        assert heard == [said]
        gathered = [torch.empty(2) for _ in range(3)] if rank == 0 else None
        dist.gather(torch.full((2,), float(rank)), gathered)
        assert rank or torch.stack(gathered).eq(torch.arange(3.0)[:, None]).all()
        dealt = torch.empty(2)
        dist.scatter(dealt, [torch.full((2,), float(peer)) for peer in range(3)] if rank == 1 else None, src=1)
        assert dealt.eq(rank).all()
        swapped = torch.empty(3)
        dist.all_to_all_single(swapped, torch.full((3,), float(rank)))
        assert swapped.tolist() == [0, 1, 2]
        if rank < 2:
            passed = torch.full((4,), float(rank))
            (dist.send if rank == 0 else dist.recv)(passed, 1 - rank)
            assert passed.eq(0).all()
        truths = torch.tensor([rank == 0])
        dist.broadcast(truths, 0)
        assert truths.item()
        empty = torch.empty(0)
        dist.all_reduce(empty)
        with pytest.raises(RuntimeError):
            dist.all_reduce(torch.tensor([1]), AVG)
        assert group.counters()["barrier"]["other_calls"] == 1
        assert dist.get_backend() == "planned"
        group.reset_counters()
        assert group.counters() == {}


def test_what_no_plan_does_is_gloos() -> None:
    run_ranks(3, others)


def in_flight(rank: int, store: dist.Store, transport: str) -> None:
    with planned(store, rank, 4, on(NETWORKS[4], transport)):
        vectors = [torch.full((size,), float(rank + size)) for size in (50_000, 3, 20_011, 9)]
        works = [dist.all_reduce(vector, async_op=True) for vector in vectors]
        whole = torch.empty(4 * 5000)
        works.append(dist.all_gather_single(whole, torch.full((5000,), float(rank)), async_op=True))
        for work in works[::-1]:
            assert work.wait()
            assert work.is_completed()
            assert work.is_success()
            assert work.exception() is None
        assert all(vector.eq(6 + 4 * len(vector)).all() for vector in vectors)
        assert whole.view(4, -1).eq(torch.arange(4.0)[:, None]).all()
        again = dist.all_reduce(vectors[0], async_op=True)
        assert torch.equal(again.get_future().wait()[0], vectors[0])
        assert again.result()[0] is vectors[0]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_works_are_asynchronous_and_waited_for_in_any_order(transport: str) -> None:
    run_ranks(4, in_flight, transport)


def groups(rank: int, store: dist.Store) -> None:
    with planned(store, rank, 4, on(NETWORKS[4])) as group:
        everybody, pair = (
            dist.new_group(),
            dist.new_group([rank // 2 * 2, rank // 2 * 2 + 1], use_local_synchronization=True),
        )
        for each, total in ((everybody, 6.0), (pair, rank // 2 * 4 + 1.0)):
            tensor = torch.full((1000,), float(rank))
            dist.all_reduce(tensor, group=each)
            assert tensor.eq(total).all()
        assert everybody.counters()["all_reduce"]["planned_calls"] == 1
        assert pair.counters()["all_reduce"]["other_calls"] == 1
        assert "this group has 2" in pair.rule
        assert group.counters() == {}


def test_a_group_of_all_ranks_has_the_plans_too_and_a_part_of_them_has_gloo() -> None:
    run_ranks(4, groups)
