"""Switches that send more than they receive: refused by default, used for what they can feed when trimmed."""

from fractions import Fraction

import pytest
from forest_networks import cut_bound, network, reference, reversed_network, star
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from comm_plans.errors import PlansError, TopologyError, UnbalancedSwitch
from comm_plans.forest import division
from comm_plans.solve import solve
from comm_plans.topology import Topology
from comm_plans.verifier import verify

SURPLUS = star([2, 5, 5, 5], [5, 5, 5, 5])  # non_eulerian_star4


@st.composite
def stars(draw: st.DrawFn) -> Topology:
    """Ranks around a switch with any bandwidths up and down."""
    ranks = draw(st.integers(2, 5))
    bandwidths = st.lists(st.integers(1, 6), min_size=ranks, max_size=ranks)
    return star(draw(bandwidths), draw(bandwidths))


def star_optimum(topology: Topology) -> Fraction:
    """all_gather on a star with a plain switch: own uplink, others over the downlink, and (N − 1) N copies in all."""
    ranks = len(topology.ranks)
    up = [topology.capacities[rank, ranks] for rank in range(ranks)]
    down = [topology.capacities[ranks, rank] for rank in range(ranks)]
    return ranks * min(min(up), min(down) / (ranks - 1), sum(up) / (ranks * (ranks - 1)))


@pytest.mark.parametrize("collective", ["all_gather", "all_reduce", "broadcast"])
def test_a_surplus_is_refused_by_name_unless_trimmed(collective: str) -> None:
    root = 1 if collective == "broadcast" else None
    with pytest.raises(UnbalancedSwitch, match=r"switch s0 of star receives 17 GB/s and sends 20 GB/s.*trim"):
        solve(SURPLUS, collective, root=root)
    verify(solve(SURPLUS, collective, root=root, trim=True).to_document())


def test_trimmed_star_reaches_what_its_uplinks_can_feed() -> None:
    plan = solve(SURPLUS, "all_gather", trim=True)
    assert plan.algbw == 4 * Fraction(17, 12)
    assert (plan.optimum, plan.optimal) == (Fraction(20, 3), False)
    mirror = solve(reversed_network(SURPLUS), "reduce_scatter", trim=True)
    assert (mirror.algbw, mirror.optimal) == (plan.algbw, False)


@settings(max_examples=60)
@given(stars())
def test_trimmed_stars_reach_their_optimum_in_closed_form(topology: Topology) -> None:
    plan = solve(topology, "all_gather", trim=True)
    assert plan.algbw == star_optimum(topology)
    assert plan.optimal == (plan.algbw == cut_bound(topology, (1,) * len(topology.ranks)))


@settings(max_examples=40)
@given(stars(), st.data())
def test_trimmed_rooted_and_weighted_plans_stay_below_the_cut_bound(topology: Topology, data: st.DataObject) -> None:
    ranks = len(topology.ranks)
    weights = data.draw(st.lists(st.integers(0, 3), min_size=ranks, max_size=ranks).filter(any))
    plan = solve(topology, "all_gather", shards=[Fraction(weight) for weight in weights], trim=True)
    assert plan.algbw <= plan.optimum == cut_bound(topology, weights)
    up = solve(topology, "reduce", root=0, trim=True)
    assert up.algbw <= up.optimum


def test_trimming_leaves_balanced_networks_alone() -> None:
    topology = reference("twobox2_3_2")
    plain, trimmed = (solve(topology, "all_gather", trim=trim) for trim in (False, True))
    assert (trimmed.trees, trimmed.optimal) == (plain.trees, True)


def test_a_source_only_switch_is_trimmed_away() -> None:
    topology = network(2, 1, {(0, 1): 3, (1, 0): 3, (2, 0): 4})
    with pytest.raises(UnbalancedSwitch):
        solve(topology, "all_gather")
    assert solve(topology, "all_gather", trim=True).algbw == 6


def test_a_switch_that_copies_needs_no_balance_once_trimmed() -> None:
    topology = star([2, 5, 5, 5], [5, 5, 5, 5], able=True)
    plan = solve(topology, "all_gather", trim=True)
    assert (plan.algbw, plan.optimal) == (Fraction(20, 3), True)


def test_a_trimmed_forest_has_no_fixed_number_of_trees() -> None:
    with pytest.raises(PlansError, match="trees per rank"):
        solve(SURPLUS, "all_gather", trim=True, trees_per_rank=2)


@settings(max_examples=30)
@given(stars())
def test_trimmed_all_reduce_is_proved_optimal(topology: Topology) -> None:
    capacities = topology.capacities
    ranks = len(topology.ranks)
    assume(any(capacities[rank, ranks] != capacities[ranks, rank] for rank in range(ranks)))
    plan = solve(topology, "all_reduce", trim=True)
    assert plan.optimal
    assert plan.algbw <= min(capacities.values())


def test_a_network_too_large_to_trim_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(division, "MOST_COLUMNS", 3)
    for collective in ("all_gather", "all_reduce"):
        with pytest.raises(TopologyError, match="too large to trim"):
            solve(SURPLUS, collective, trim=True)
