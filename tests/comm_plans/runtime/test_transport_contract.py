"""What every transport must do: each collective, type and size as torch's own group does it, to the bit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
import torch
from live_networks import two_boxes, unequal_star
from live_ranks import TRANSPORTS, gloo, run_ranks
from torch import Tensor
from torch import distributed as dist

from comm_plans import solve
from comm_plans.fabrics import fabric
from comm_plans.plan import COLLECTIVES
from comm_plans.runtime.lowering import lower
from comm_plans.runtime.program import RankProgram
from comm_plans.topology import Topology

NETWORKS = {2: fabric("path:ranks=2"), 3: fabric("ring:ranks=3"), 4: unequal_star(), 8: two_boxes()}
TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint8]
SIZES = [0, 1, 7, 1000, 70_001]
ROOT = 1

Programs = dict[str, tuple[RankProgram, ...]]


def programs_of(topology: Topology) -> Programs:
    rooted = ("broadcast", "reduce")
    return {each: lower(solve(topology, each, root=ROOT if each in rooted else None)) for each in COLLECTIVES}


def numbers(size: int, dtype: torch.dtype, rank: int) -> Tensor:
    """Whole numbers so small that their sums over 8 ranks are exact in every type."""
    generator = torch.Generator().manual_seed(1000 * size + rank)
    return torch.randint(0, 16, (size,), generator=generator).to(dtype)


def planned(collective: str, own: Tensor, rank: int, world: int) -> tuple[Tensor, slice]:
    """The buffer to submit, and which part of it counts afterwards."""
    shard = slice(rank * len(own), (rank + 1) * len(own))
    if collective == "all_gather":
        gathered = torch.full((len(own) * world,), 77, dtype=own.dtype)
        gathered[shard] = own
        return gathered, slice(None)
    if collective == "reduce_scatter":
        return torch.cat([own + peer % 3 for peer in range(world)]), shard
    return own.clone(), slice(None) if collective != "reduce" or rank == ROOT else slice(0)


def expected(collective: str, buffer: Tensor, own: Tensor) -> Tensor:
    """torch's own result for what was submitted in `buffer`."""
    result = own.clone()
    if collective == "all_reduce":
        dist.all_reduce(result)
    elif collective == "broadcast":
        dist.broadcast(result, ROOT)
    elif collective == "reduce":
        dist.reduce(result, ROOT)
        return result if dist.get_rank() == ROOT else result[:0]
    elif collective == "all_gather":
        result = torch.empty_like(buffer)
        dist.all_gather_into_tensor(result, own)
    else:
        dist.reduce_scatter_tensor(result, buffer.clone())
    return result


def cases(programs: Programs) -> Iterator[tuple[str, torch.dtype, int]]:
    yield from product(programs, TYPES, SIZES)


def contract(rank: int, store: dist.Store, name: str, programs: Programs) -> int:
    world = programs["all_reduce"][0].world_size
    transport = TRANSPORTS[name](dist.PrefixStore("plans", store))
    with gloo(store, rank, world):
        checked = 0
        for collective, dtype, size in cases(programs):
            own = numbers(size, dtype, rank)
            buffer, counts = planned(collective, own, rank, world)
            right = expected(collective, buffer, own)
            job = transport.submit(programs[collective][rank], buffer)
            job.wait(30)
            assert torch.equal(buffer[counts], right), (collective, dtype, size)
            assert job.done()
            assert job.error is None
            assert job.seconds > 0
            checked += 1
        transport.close()
        return checked


@pytest.mark.parametrize("name", TRANSPORTS)
@pytest.mark.parametrize("world", [2, 3, 4, pytest.param(8, marks=pytest.mark.slow)])
def test_results_are_torchs(name: str, world: int) -> None:
    programs = programs_of(NETWORKS[world])
    assert run_ranks(world, contract, name, programs) == [len(list(cases(programs)))] * world


def many_in_flight(rank: int, store: dist.Store, name: str, programs: Programs) -> None:
    transport = TRANSPORTS[name](dist.PrefixStore("plans", store))
    vectors = [torch.full((size,), float(rank + place)) for place, size in enumerate([50_000, 3, 0, 20_011, 9])]
    gathered = [planned("all_gather", numbers(size, torch.int32, rank), rank, 4)[0] for size in [4001, 5, 2]]
    ended: list[float] = []
    jobs = [transport.submit(programs["all_reduce"][rank], vector) for vector in vectors]
    jobs += [transport.submit(programs["all_gather"][rank], buffer) for buffer in gathered]
    for job in jobs[::-1]:
        job.add_done_callback(lambda job: ended.append(job.seconds))
        job.wait(30)
    assert len(ended) == len(jobs)
    for place, vector in enumerate(vectors):
        assert torch.equal(vector, torch.full_like(vector, sum(peer + place for peer in range(4))))
    for buffer, size in zip(gathered, [4001, 5, 2], strict=True):
        assert torch.equal(buffer, torch.cat([numbers(size, torch.int32, peer) for peer in range(4)]))
    transport.close()


@pytest.mark.parametrize("name", TRANSPORTS)
def test_jobs_overlap_and_are_waited_for_in_any_order(name: str) -> None:
    run_ranks(4, many_in_flight, name, programs_of(NETWORKS[4]))


def float_sums(rank: int, store: dist.Store, name: str, programs: Programs) -> list[list[bytes]]:
    transport = TRANSPORTS[name](dist.PrefixStore("plans", store))
    results = []
    for dtype in (torch.float32, torch.bfloat16):
        own = torch.randn(30_000, generator=torch.Generator().manual_seed(rank)).to(dtype)
        runs = [own.clone() for _ in range(5)]
        jobs = [transport.submit(programs["all_reduce"][rank], run) for run in runs]
        for job in jobs:
            job.wait(30)
        results.append([run.view(torch.uint8).numpy().tobytes() for run in runs])
    transport.close()
    return results


@pytest.mark.parametrize("name", TRANSPORTS)
def test_sums_of_floats_are_equal_to_the_bit_on_all_ranks_and_in_all_runs(name: str) -> None:
    programs = programs_of(NETWORKS[8])
    runs = run_ranks(8, float_sums, name, programs) + run_ranks(8, float_sums, name, programs)
    for each_dtype in range(2):
        assert len({result for rank in runs for result in rank[each_dtype]}) == 1


def under_inference(rank: int, store: dist.Store, name: str, programs: Programs) -> None:
    transport = TRANSPORTS[name](dist.PrefixStore("plans", store))
    with torch.inference_mode():
        inferred = torch.ones(1000)
    parameter = torch.nn.Parameter(torch.ones(1000))
    for buffer in (inferred, parameter):
        transport.submit(programs["all_reduce"][rank], buffer).wait(30)
    assert inferred.eq(3).all()
    assert parameter.eq(3).all()
    transport.close()


@pytest.mark.parametrize("name", TRANSPORTS)
def test_buffers_may_be_parameters_or_come_from_inference(name: str) -> None:
    run_ranks(3, under_inference, name, programs_of(NETWORKS[3]))
