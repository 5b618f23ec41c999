"""Plans for live process groups: each collective asked for, from the cache the second time, for plain switches."""

from fractions import Fraction
from pathlib import Path

import pytest

from comm_plans.cache import PlanCache
from comm_plans.errors import PlansError
from comm_plans.fabrics import fabric
from comm_plans.live import LivePlans, plans_for
from comm_plans.topology import Link, Switch, Topology


def test_every_collective_has_a_plan_and_the_second_time_it_is_known(tmp_path: Path) -> None:
    network = fabric("ring:ranks=3")
    first = plans_for(network, 3, PlanCache(tmp_path))
    second = plans_for(network, 3, PlanCache(tmp_path))
    rooted = [(collective, root) for collective in ("broadcast", "reduce") for root in range(3)]
    unrooted = [(collective, None) for collective in ("all_reduce", "all_gather", "reduce_scatter")]
    assert [(plan.collective, plan.root) for plan in first.plans] == unrooted + rooted
    assert (first.source, second.source) == ("solved", "cache")
    assert [plan.algbw for plan in first.plans] == [plan.algbw for plan in second.plans]


def test_only_what_was_asked_for_is_solved(tmp_path: Path) -> None:
    plans = plans_for(fabric("ring:ranks=3"), 3, PlanCache(tmp_path), ["reduce_scatter"])
    assert [plan.collective for plan in plans.plans] == ["reduce_scatter"]


def test_switches_are_only_asked_to_forward(tmp_path: Path) -> None:
    able = Switch("s", multicast=True, reduces=True)
    links = [Link(*ends, Fraction(1)) for rank in "abc" for ends in ((rank, "s"), ("s", rank))]
    (plan,) = plans_for(
        Topology("able", tuple("abc"), (able,), tuple(links)), 3, PlanCache(tmp_path), ["all_reduce"]
    ).plans
    assert plan.topology.switches == (Switch("s"),)
    assert all(path[-1] < 3 for tree in plan.trees for path in tree.paths)


def test_plans_of_two_networks_do_not_mix(tmp_path: Path) -> None:
    cache = PlanCache(tmp_path)
    ring, mesh = (
        cache.solve(fabric(word), kind)[0]
        for word, kind in (("ring:ranks=4", "all_gather"), ("full_mesh:ranks=4", "all_reduce"))
    )
    with pytest.raises(PlansError, match="are for different networks"):
        LivePlans((ring, mesh))


def test_another_number_of_ranks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlansError, match="a network of 3 ranks and the job has 4"):
        plans_for(fabric("ring:ranks=3"), 4, PlanCache(tmp_path))
