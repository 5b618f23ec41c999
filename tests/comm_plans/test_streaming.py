"""Predicted times of streaming plans, and the plan that is chosen by them."""

from __future__ import annotations

from fractions import Fraction

import pytest
from live_networks import degraded_torus, two_boxes, unequal_star

from comm_plans import solve
from comm_plans.errors import PlansError
from comm_plans.fabrics import fabric
from comm_plans.plan import COLLECTIVES, Plan
from comm_plans.streaming import FEWEST_BYTES, MOST_BYTES, chunk_bytes, quickest_plan, streamed_seconds
from comm_plans.topology import Topology

MIB = 1 << 20


def fluid(plan: Plan, size: int) -> float:
    return float(size / plan.algbw / 10**9)


def test_one_hop_has_nothing_to_fill() -> None:
    plan = solve(fabric("full_mesh:ranks=4"), "all_gather")
    assert plan.depth == 1
    assert streamed_seconds(plan, 8 * MIB) == fluid(plan, 8 * MIB)


def test_filling_takes_a_chunk_a_hop_at_the_rate_of_the_tree() -> None:
    plan = solve(two_boxes(), "all_reduce")
    rate = plan.algbw / 8  # eight equal trees of two hops each way
    assert plan.depth == 2
    filling = 3 * FEWEST_BYTES / rate / 10**9
    assert streamed_seconds(plan, MIB) == pytest.approx(fluid(plan, MIB) + float(filling), rel=1e-12)


@pytest.mark.parametrize("carried", [0, 1, 10**6, 10**9])
@pytest.mark.parametrize("levels", [1, 2, 9])
def test_chunks_are_neither_tiny_nor_huge(carried: int, levels: int) -> None:
    chunk = chunk_bytes(carried, levels)
    assert FEWEST_BYTES <= chunk <= MOST_BYTES
    assert chunk % 16 == 0


@pytest.mark.parametrize("topology", [unequal_star(), two_boxes()], ids=lambda topology: topology.name)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_the_best_plan_is_taken_where_it_fills_quickly(topology: Topology, collective: str) -> None:
    root = 0 if collective in ("broadcast", "reduce") else None
    plan = quickest_plan(lambda trees: solve(topology, collective, root=root, trees_per_rank=trees), 8 * MIB)
    assert plan.optimal
    assert streamed_seconds(plan, 8 * MIB) <= 1.06 * fluid(plan, 8 * MIB)


def test_few_shallow_trees_win_over_many_deep_ones() -> None:
    """The best plan has 19 parts in up to 14 hops; two trees a rank reach 100 of its 102.5 Mbit/s in 6 hops."""
    topology = degraded_torus()
    best = solve(topology, "all_reduce")
    assert best.algbw * 8000 == Fraction("102.5")
    small = quickest_plan(lambda trees: solve(topology, "all_reduce", trees_per_rank=trees), 8 * MIB)
    large = quickest_plan(lambda trees: solve(topology, "all_reduce", trees_per_rank=trees), 1024 * MIB)
    assert small.trees_per_rank == 2
    assert small.algbw * 8000 == 100
    assert streamed_seconds(small, 8 * MIB) < 0.8 * streamed_seconds(best, 8 * MIB)
    assert large.trees == best.trees


def test_networks_that_refuse_a_number_of_trees_get_the_best_plan() -> None:
    best = solve(degraded_torus(), "all_reduce")

    def solve_any(trees: int | None) -> Plan:
        if trees is not None:
            raise PlansError("a trimmed forest cannot be held to a number of trees; leave the trees per rank open")
        return best

    assert quickest_plan(solve_any, MIB) is best
