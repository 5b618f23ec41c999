"""MSCCL XML does its collective: every file is executed on numbers, with thread blocks taking turns at random."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msccl_interpreter import check, run
from small_plans import planned, random_plan, ring_all_gather

from comm_plans.errors import PlanError, PlansError
from comm_plans.exports.msccl_lowering import lower
from comm_plans.exports.msccl_xml import msccl_xml, written
from comm_plans.fabrics import fabric
from comm_plans.forest.pipeline import pipeline
from comm_plans.plan import COLLECTIVES, Plan, Tree
from comm_plans.solve import solve
from comm_plans.topology import Link, Switch, Topology


def inputs_of(plan: Plan, chunks: int) -> list[np.ndarray]:
    ranks = len(plan.topology.ranks)
    sizes = {"all_gather": chunks // ranks, "broadcast": 0}
    numbers = np.random.default_rng(0).integers(0, 10**6, size=(ranks, chunks)).astype(float)
    return [
        numbers[rank, : chunks if rank == plan.root else sizes.get(plan.collective, chunks)] for rank in range(ranks)
    ]


def expected(plan: Plan, inputs: list[np.ndarray], rank: int) -> np.ndarray:
    if plan.collective == "all_gather":
        return np.concatenate(inputs)
    if plan.collective == "broadcast":
        return inputs[plan.root]
    total = np.sum(inputs, axis=0)
    if plan.collective == "reduce_scatter":
        return np.split(total, len(inputs))[rank]
    return total if plan.collective == "all_reduce" or rank == plan.root else total[:0]


def assert_computes(plan: Plan, text: str, chunks: int, seed: int, in_place: bool = False) -> None:
    inputs = inputs_of(plan, chunks)
    for rank, output in enumerate(run(text, inputs, seed=seed, in_place=in_place)):
        np.testing.assert_array_equal(output, expected(plan, inputs, rank), err_msg=f"{plan.collective} rank {rank}")


def assert_does_its_collective(plan: Plan, seed: int, in_place: bool = False) -> None:
    text, report = msccl_xml(plan)
    assert_computes(plan, text, report.chunks, seed, in_place)


@settings(max_examples=40)
@given(collective=st.sampled_from(COLLECTIVES), ranks=st.integers(2, 6), seed=st.integers(0, 10**6))
def test_random_trees(collective: str, ranks: int, seed: int) -> None:
    assert_does_its_collective(random_plan(collective, ranks, seed), seed)


@settings(max_examples=30)
@given(collective=st.sampled_from(COLLECTIVES), ranks=st.integers(2, 6), seed=st.integers(0, 10**6))
def test_trees_that_take_turns_in_shared_thread_blocks(collective: str, ranks: int, seed: int) -> None:
    plan = random_plan(collective, ranks, seed)
    program = lower(plan, share=True)
    assert_computes(plan, written(plan, program), program.chunks, seed)


@pytest.mark.parametrize(
    ("name", "collective"),
    [("dgx_a100:boxes=2", "all_reduce"), *(("torus:shape=3x3", name) for name in COLLECTIVES), ("fat_tree", "reduce")],
)
def test_solved_plans(name: str, collective: str) -> None:
    root = 1 if collective in ("broadcast", "reduce") else None
    assert_does_its_collective(solve(fabric(name), collective, root=root), seed=3)


@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter", "all_reduce"])
def test_in_place(collective: str) -> None:
    for seed in range(5):
        assert_does_its_collective(random_plan(collective, 5, seed), seed, in_place=True)


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_pipelined_chunks_follow_each_other_in_the_same_thread_blocks(collective: str) -> None:
    plan = random_plan(collective, 4, 7, trees_a_root=1)
    chunked = pipeline(plan, 5)
    assert_does_its_collective(chunked, seed=1)
    assert msccl_xml(chunked)[1].thread_blocks == msccl_xml(plan)[1].thread_blocks


def test_a_ring_is_one_thread_block_a_shard_and_its_copy() -> None:
    text, report = msccl_xml(ring_all_gather(4))
    assert (report.chunks, report.channels, report.steps) == (4, 4, 1)
    kinds = [[step.get("type") for block in gpu for step in block] for gpu in ElementTree.fromstring(text)]
    assert sorted(kinds[0]) == ["cpy", "r", "rcs", "rcs", "s"]


def test_large_shares_become_several_steps() -> None:
    plan = ring_all_gather(3)
    thin = replace(plan.trees[0], share=Fraction(1, 300))
    rest = replace(plan.trees[0], start=Fraction(1, 300), share=Fraction(99, 300))
    text, report = msccl_xml(planned("all_gather", plan.topology, (thin, rest, *plan.trees[1:])))
    assert report.chunks == 300
    assert max(int(step.get("cnt")) for step in check(text).iter("step")) == 71
    assert_does_its_collective(planned("all_gather", plan.topology, (thin, rest, *plan.trees[1:])), seed=0)


def test_connections_that_leave_a_host_are_reported() -> None:
    plan = random_plan("all_gather", 4, 1)
    report = msccl_xml(plan)[1]
    names = plan.topology.ranks
    crossing = {
        host: sum(
            names[path[0]] in members and names[path[-1]] not in members for tree in plan.trees for path in tree.paths
        )
        for host, members in plan.topology.hosts.items()
    }
    assert report.connections_by_host == crossing


def test_limits_say_how_to_mend() -> None:
    plan = ring_all_gather(3)
    sliver = replace(plan.trees[0], share=Fraction(1, 40_000))
    rest = replace(plan.trees[0], start=Fraction(1, 40_000), share=Fraction(1, 3) - Fraction(1, 40_000))
    with pytest.raises(PlansError, match=r"565 steps in a thread block .* allows 256; .*--trees-per-rank 1"):
        msccl_xml(planned("all_gather", plan.topology, (sliver, rest, *plan.trees[1:])))


def test_a_wrong_plan_is_not_exported() -> None:
    plan = ring_all_gather(3)
    with pytest.raises(PlanError):
        msccl_xml(replace(plan, trees=plan.trees[1:]))


def test_switches_that_multicast_have_no_words() -> None:
    links = [Link(f"g{rank}", "sw", Fraction(1)) for rank in range(3)]
    links += [Link("sw", f"g{rank}", Fraction(1)) for rank in range(3)]
    star = Topology("star", ("g0", "g1", "g2"), (Switch("sw", multicast=True),), tuple(links))
    trees = tuple(
        Tree(
            "broadcast", root, Fraction(root, 3), Fraction(1, 3),
            ((root, 3), *((3, rank) for rank in range(3) if rank != root)),
        )
        for root in range(3)
    )  # fmt: skip
    with pytest.raises(PlansError, match="switch sw multicasts"):
        msccl_xml(planned("all_gather", star, trees))
