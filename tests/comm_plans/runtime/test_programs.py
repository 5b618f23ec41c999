"""Lowered plans: pieces tile the buffer, all ranks' programs give right results, wrong ones are found out."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from live_networks import degraded_torus, unequal_star
from network_strategies import networks

from comm_plans import solve
from comm_plans.errors import PlanError, PlansError
from comm_plans.fabrics import fabric
from comm_plans.plan import COLLECTIVES, Plan
from comm_plans.runtime.lowering import lower, plan_digest
from comm_plans.runtime.program import SHARDED, RankProgram
from comm_plans.runtime.replay import replay
from comm_plans.streaming import MOST_BYTES, streamed_seconds
from comm_plans.topology import Switch, Topology

FABRICS = ["path:ranks=2", "ring:ranks=5", "ring:ranks=3,directions=1", "full_mesh:ranks=4", "star:ranks=6"]
FABRICS += ["torus:shape=3x3", "hypercube:dimensions=3", "dgx_h100:boxes=2", "fat_tree:leaves=2,ranks=3"]


def solved(topology: Topology, collective: str, root: int = 0) -> Plan:
    return solve(topology, collective, root=root if collective in ("broadcast", "reduce") else None)


def elements_for(program: RankProgram, wanted: int) -> int:
    return wanted * program.world_size if program.collective in SHARDED else wanted


@pytest.mark.parametrize("name", FABRICS)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_collective_ends_right_whatever_comes_first(name: str, collective: str) -> None:
    programs = lower(solved(fabric(name), collective, root=1))
    for seed, elements in enumerate([0, 1, 3, 29]):
        replay(programs, elements_for(programs[0], elements), chunk=1 + seed, seed=seed)


@given(networks(), st.sampled_from(COLLECTIVES), st.integers(0, 40), st.integers(1, 9), st.integers(0, 99))
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_any_network(topology: Topology, collective: str, elements: int, chunk: int, seed: int) -> None:
    plain = replace(topology, switches=tuple(Switch(each.name) for each in topology.switches))
    try:
        plan = solved(plain, collective)
    except PlansError:
        return
    programs = lower(plan)
    replay(programs, elements_for(programs[0], elements), chunk=chunk, seed=seed)


@pytest.mark.parametrize("topology", [unequal_star(), degraded_torus()], ids=lambda topology: topology.name)
def test_an_all_reduce_of_unequal_trees(topology: Topology) -> None:
    plan = solved(topology, "all_reduce")
    programs = lower(plan)
    assert any(tree.reduce_children != tree.broadcast_children for program in programs for tree in program.trees)
    replay(programs, 300, chunk=7)


def test_a_plan_in_steps_runs_without_them() -> None:
    replay(lower(solve(fabric("hypercube:dimensions=3"), "all_gather", method="breadth_first")), 8 * 12, chunk=2)


@given(st.sampled_from(FABRICS), st.sampled_from(COLLECTIVES), st.integers(0, 10**7))
@settings(max_examples=40)
def test_pieces_tile_the_buffer(name: str, collective: str, wanted: int) -> None:
    program = lower(solved(fabric(name), collective))[0]
    elements = elements_for(program, wanted)
    ranges = [program.piece(tree, elements) for tree in program.trees]
    assert ranges[0][0] == 0
    assert ranges[-1][1] == elements
    assert all(one[1] == other[0] and one[0] <= one[1] for one, other in pairwise(ranges))


@pytest.mark.parametrize("size", [1, 4096, 8 << 20, 1 << 30])
def test_chunks_cut_no_element_and_filling_takes_time(size: int) -> None:
    plan = solved(fabric("torus:shape=3x3"), "all_reduce")
    program = lower(plan)[0]
    assert all(program.chunk_bytes(tree, size) % 16 == 0 for tree in program.trees)
    assert all(0 < program.chunk_bytes(tree, size) <= MOST_BYTES for tree in program.trees)
    fluid = float(size / plan.algbw / 10**9)
    assert fluid <= program.seconds(size) == streamed_seconds(plan, size)


def test_rates_fill_the_links_and_no_more() -> None:
    plan = solved(degraded_torus(), "all_reduce")
    loads: dict[tuple[int, int], Fraction] = {}
    for program in lower(plan):
        for tree in program.trees:
            parents = [] if tree.reduce_parent is None else [tree.reduce_parent]
            for peer in [*parents, *tree.broadcast_children]:
                loads[program.rank, peer] = loads.get((program.rank, peer), Fraction(0)) + tree.rate
    capacities = plan.topology.capacities
    assert max(load / capacities[link] for link, load in loads.items()) == 1


def test_the_digest_tells_plans_apart_and_not_how_long_they_took() -> None:
    plan = solved(fabric("ring:ranks=4"), "all_reduce")
    assert plan_digest(replace(plan, solve_seconds=9.0)) == plan_digest(plan)
    others = [replace(plan, trees=plan.trees[::-1]), solved(fabric("ring:ranks=4"), "all_gather")]
    assert len({plan_digest(each) for each in [plan, *others]}) == 3


def test_plans_that_need_switches_to_add_or_copy_are_refused() -> None:
    star = fabric("star:ranks=4")
    able = replace(star, switches=(Switch(star.switches[0].name, multicast=True, reduces=True),))
    with pytest.raises(PlanError, match="adds up or copies in switches"):
        lower(solved(able, "all_reduce"))


def test_unequal_shards_are_refused() -> None:
    plan = solve(fabric("ring:ranks=3"), "all_gather", shards=[Fraction(1), Fraction(2), Fraction(3)])
    with pytest.raises(PlanError, match="unequal shards"):
        lower(plan)


def test_a_buffer_that_cannot_be_shared_out_is_refused() -> None:
    program = lower(solved(fabric("ring:ranks=3"), "all_gather"))[0]
    with pytest.raises(PlansError, match="multiple of 3"):
        program.piece(program.trees[0], 10)


def tampered(programs: tuple[RankProgram, ...], rank: int, **changes: object) -> list[RankProgram]:
    program = programs[rank]
    tree = replace(program.trees[0], **changes)
    return [*programs[:rank], replace(program, trees=(tree, *program.trees[1:])), *programs[rank + 1 :]]


def test_the_replay_finds_out_wrong_programs() -> None:
    programs = lower(solved(fabric("full_mesh:ranks=4"), "all_reduce"))
    first = programs[0].trees[0]
    assert first.root == 0
    with pytest.raises(PlanError, match="waits for none"):
        replay(tampered(programs, 0, reduce_children=first.reduce_children[1:]), 16)
    with pytest.raises(PlanError, match="for ever"):
        replay(tampered(programs, 0, broadcast_children=first.broadcast_children[1:]), 16)
    with pytest.raises(PlanError, match="wrong result"):
        replay([replace(program, collective="broadcast", root=1) for program in programs], 16)
