"""The rule: predicted times are right where they can be worked out by hand, and only plans that win are taken."""

from __future__ import annotations

import pytest
from live_networks import degraded_torus, two_boxes, unequal_star

from comm_plans import solve
from comm_plans.fabrics import fabric
from comm_plans.live import UNROOTED, LivePlans
from comm_plans.runtime.costs import P2P, STREAMS, Costs
from comm_plans.runtime.inner_time import stages
from comm_plans.runtime.routes import Routes
from comm_plans.runtime.rule import SIZES, Rule

FREE = Costs(start=0, hop=0, byte=0)
MIB = 2**20


def gloo_seconds(topology, collective: str, size_bytes: int, root: int | None = None) -> float:
    rule = Rule(solve(topology, collective, root=root), FREE)
    return rule.by_gloo(size_bytes)


def test_gloos_ring_is_as_slow_as_its_slowest_host() -> None:
    assert gloo_seconds(unequal_star(), "all_reduce", 8 * MIB) == pytest.approx(1.5 * 8 * MIB / 6.25e6, rel=1e-3)
    assert gloo_seconds(unequal_star(), "all_gather", 8 * MIB) == pytest.approx(0.75 * 8 * MIB / 6.25e6, rel=1e-3)


def test_flows_of_gloos_ring_that_meet_on_a_link_of_a_torus_share_it() -> None:
    """Downwards, 3 → 2 goes by 0, as 0 → 8 does: both cross the link 0 → 2."""
    once_around = 2 * 8 / 9 * 64 * MIB / 1e9
    assert gloo_seconds(fabric("torus:shape=3x3"), "all_reduce", 64 * MIB) == pytest.approx(2 * once_around, rel=0.02)


def test_a_binomial_tree_doubles_who_holds_the_data() -> None:
    rounds = [stage.flows for stage in stages("broadcast", 6, root=4)]
    assert rounds == [((4, 5),), ((4, 0), (5, 1)), ((4, 2), (5, 3))]


def test_a_reduction_gathers_shards_at_its_root() -> None:
    ring, gather = stages("reduce", 4, root=2)
    assert gather.flows == ((0, 2), (1, 2), (3, 2))
    assert ring.share + gather.share == 1


@pytest.mark.parametrize("topology", [unequal_star(), two_boxes(), degraded_torus()], ids=lambda each: each.name)
@pytest.mark.parametrize("costs", [STREAMS, P2P], ids=["streams", "p2p"])
def test_from_the_threshold_on_the_plan_is_ahead_and_just_below_it_is_not(topology, costs: Costs) -> None:
    for collective in UNROOTED:
        rule = Rule(solve(topology, collective), costs)
        threshold = rule.threshold()
        if threshold is not None:
            assert all(rule.by_plan(size) <= rule.by_gloo(size) for size in SIZES if size >= threshold)
            assert threshold == SIZES[0] or rule.by_plan(threshold // 2) > rule.by_gloo(threshold // 2)


def test_slow_networks_go_by_plan_and_fast_ones_by_gloo() -> None:
    assert Rule(solve(two_boxes(), "all_reduce"), STREAMS).threshold() is not None
    for name in ("full_mesh:ranks=4,bandwidth=10", "nvl:ranks=8"):
        for collective in UNROOTED:
            assert Rule(solve(fabric(name), collective), STREAMS).threshold() is None


def test_the_rule_is_told_in_a_line_for_each_collective() -> None:
    plans = LivePlans(
        (solve(two_boxes(), "all_reduce"), *(solve(two_boxes(), "broadcast", root=root) for root in range(8)))
    )
    lines = Routes.of(plans, rank=3, costs=STREAMS, threshold=2048).rule.splitlines()
    assert lines[0] == "plans for two boxes (file, 0 s)"
    assert lines[1].startswith("all_reduce: by plan from 2 KiB; 8 MiB take ")
    assert lines[2].startswith("broadcast (root 0, 1, 2, 3, 4, 5, 6, 7): by plan from 2 KiB; ")
    assert len(lines) == 3
