"""Plans in rounds: all ranks list the same messages, and gloo, told to go by order alone, gives the right results."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
import torch
from live_networks import degraded_torus, two_boxes, unequal_star
from live_ranks import gloo, run_ranks
from torch import distributed as dist

from comm_plans import solve
from comm_plans.fabrics import fabric
from comm_plans.plan import COLLECTIVES, Plan
from comm_plans.runtime.program import SHARDED
from comm_plans.runtime.rounds import RoundProgram, in_rounds
from comm_plans.runtime.run_rounds import run_rounds
from comm_plans.topology import Topology

ROOT = 1
NETWORKS = [fabric("path:ranks=2"), unequal_star(), two_boxes(), degraded_torus(), fabric("torus:shape=3x3")]


def solved(topology: Topology, collective: str) -> Plan:
    return solve(topology, collective, root=ROOT if collective in ("broadcast", "reduce") else None)


@pytest.mark.parametrize("topology", NETWORKS, ids=lambda topology: topology.name)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_both_ends_of_every_pair_have_the_same_messages_in_the_same_order(topology: Topology, collective: str) -> None:
    programs = in_rounds(solved(topology, collective), chunks=3)
    for number in range(len(programs[0].rounds)):
        said = {rank: program.rounds[number] for rank, program in enumerate(programs)}
        for rank, messages in said.items():
            for peer in said:
                sent = [(each.tree, each.chunk) for each in messages if each.sends and each.peer == peer]
                heard = [(each.tree, each.chunk) for each in said[peer] if not each.sends and each.peer == rank]
                assert sent == heard


def test_rounds_are_those_of_a_pipeline() -> None:
    plan = solved(fabric("path:ranks=4"), "broadcast")
    programs = in_rounds(plan, chunks=5)
    assert len(programs[0].rounds) == 5 + plan.depth - 1
    sends = Counter(message.chunk for each in programs for rounds in each.rounds for message in rounds if message.sends)
    assert sends == dict.fromkeys(range(5), 3)


def results(rank: int, store: dist.Store, programs: dict[str, tuple[RoundProgram, ...]], world: int) -> None:
    with gloo(store, rank, world):
        group = dist.group.WORLD
        for collective, size in [(name, size) for name in programs for size in (0, 1, 5, 1000)]:
            elements = size * world if collective in SHARDED else size
            vectors = torch.arange(world)[:, None] * 7 + torch.arange(elements) % 11
            buffer = vectors[rank].clone()
            run_rounds(group, programs[collective][rank], buffer)
            shard = slice(rank * size, (rank + 1) * size)
            if collective == "all_gather":
                right = torch.cat([vectors[peer, peer * size : (peer + 1) * size] for peer in range(world)])
                assert torch.equal(buffer, right)
            elif collective == "broadcast":
                assert torch.equal(buffer, vectors[ROOT])
            elif collective == "reduce_scatter":
                assert torch.equal(buffer[shard], vectors.sum(0)[shard])
            elif collective == "all_reduce" or rank == ROOT:
                assert torch.equal(buffer, vectors.sum(0))


@pytest.mark.parametrize("topology", [unequal_star(), degraded_torus()], ids=lambda topology: topology.name)
def test_gloo_gives_the_right_results(topology: Topology) -> None:
    world = len(topology.ranks)
    programs = {name: in_rounds(solved(topology, name), chunks=4) for name in COLLECTIVES}
    run_ranks(world, results, programs, world)


def test_spans_of_the_chunks_tile_the_piece() -> None:
    program = in_rounds(solved(unequal_star(), "all_reduce"), chunks=3)[0]
    spans = {program.span(message, 100) for messages in program.rounds for message in messages}
    assert min(low for low, _ in spans) == 0
    assert max(high for _, high in spans) == 100
    assert sum(Fraction(high - low) for low, high in spans) == 100
