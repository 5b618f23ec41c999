"""Every plan reaches the optimum it claims, whichever way it was grown; what cannot be solved is refused by name."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from forest_networks import REFERENCE, cut_bound, network, networks, reference, reversed_network, star
from hypothesis import given, settings
from hypothesis import strategies as st
from network_strategies import renumbered

from comm_plans.errors import Disconnected, PlansError, TopologyError, UnbalancedSwitch
from comm_plans.fabrics import fabric
from comm_plans.forest.few_trees import sufficient_trees, whole_capacities
from comm_plans.forest.general import CapacityLost, carries, pack_forest
from comm_plans.forest.optimum import find_optimum
from comm_plans.forest.switch_removal import remove_switches
from comm_plans.solve import solve
from comm_plans.topology import Link, Topology
from comm_plans.verifier import verify

NAMES = list(REFERENCE["topologies"])
EVERY = st.sampled_from(["all_gather", "reduce_scatter"])


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter"])
@pytest.mark.parametrize("name", NAMES)
def test_reference_networks_reach_their_optimum(name: str, collective: str, symmetric: bool) -> None:
    topology = reference(name)
    plan = solve(topology, collective, symmetric=symmetric)
    assert plan.algbw == len(topology.ranks) / Fraction(REFERENCE["topologies"][name]["inv_x"])
    assert plan.optimal
    assert verify(plan.to_document()).proved


@pytest.mark.parametrize("name", NAMES)
def test_exactly_k_trees_per_rank(name: str) -> None:
    topology = reference(name)
    for trees, entry in REFERENCE["topologies"][name]["fixed_k_exact"].items():
        plan = solve(topology, "all_gather", trees_per_rank=int(trees))
        ranks = len(topology.ranks)
        assert plan.algbw == ranks / Fraction(entry["inv_x_k"])
        assert plan.optimal == (plan.algbw == plan.optimum)
        assert plan.trees_per_rank == int(trees)
        assert all((tree.share * ranks * int(trees)).denominator == 1 for tree in plan.trees)


@settings(max_examples=120)
@given(networks(), EVERY, st.booleans())
def test_random_networks_reach_brute_force_over_all_cuts(topology: Topology, collective: str, symmetric: bool) -> None:
    plan = solve(topology, collective, symmetric=symmetric)
    toward = topology if collective == "all_gather" else reversed_network(topology)
    assert plan.algbw == cut_bound(toward, [1] * len(topology.ranks))
    assert verify(plan.to_document()).proved


@settings(max_examples=80)
@given(networks(), st.integers(1, 4), st.booleans())
def test_random_networks_with_few_trees(topology: Topology, trees: int, symmetric: bool) -> None:
    # Whole trees can unbalance a switch; a larger scale is taken then, so the plan need not be the best of k trees.
    plan = solve(topology, "all_gather", trees_per_rank=trees, symmetric=symmetric)
    assert plan.trees_per_rank == trees
    assert plan.algbw <= plan.optimum


@settings(max_examples=80)
@given(networks(), st.data())
def test_packed_trees_use_no_link_beyond_its_capacity(topology: Topology, data: st.DataObject) -> None:
    ranks, nodes = len(topology.ranks), len(topology.nodes)
    weights = dict(enumerate(data.draw(st.lists(st.integers(0, 3), min_size=ranks, max_size=ranks).filter(any))))
    best = find_optimum(topology.capacities, weights, nodes).inverse_rate
    trees = sufficient_trees(topology.capacities, best)
    capacities = whole_capacities(topology.capacities, best * trees)
    rooted = {node: weight * trees for node, weight in weights.items()}
    batches = pack_forest(capacities, rooted, nodes)
    loads: Counter[tuple[int, int]] = Counter()
    roots: Counter[int] = Counter()
    for batch in batches:
        roots[batch.root] += batch.multiplicity
        reached = {batch.root}
        for path in batch.paths:
            assert path[0] in reached
            assert path[-1] not in reached
            assert all(node >= ranks for node in path[1:-1])
            reached.add(path[-1])
            for link in pairwise(path):
                loads[link] += batch.multiplicity
        assert reached == set(range(ranks))
    assert roots == Counter({node: weight for node, weight in rooted.items() if weight})
    assert all(load <= capacities[link] for link, load in loads.items())


@settings(max_examples=80)
@given(networks(most_switches=3))
def test_removing_switches_keeps_what_terminals_can_receive(topology: Topology) -> None:
    ranks, nodes = len(topology.ranks), len(topology.nodes)
    best = find_optimum(topology.capacities, dict.fromkeys(range(ranks), 1), nodes).inverse_rate
    trees = sufficient_trees(topology.capacities, best)
    weights = dict.fromkeys(range(ranks), trees)
    splits = remove_switches(whole_capacities(topology.capacities, best * trees), weights, nodes)
    assert all(u < ranks and v < ranks for u, v in splits.capacities)
    assert carries(splits.capacities, weights, nodes)


@settings(max_examples=30)
@given(networks(), st.integers(0, 10**6), EVERY)
def test_renumbering_changes_nothing(topology: Topology, seed: int, collective: str) -> None:
    assert solve(renumbered(topology, seed), collective).algbw == solve(topology, collective).algbw


@settings(max_examples=30)
@given(networks(), st.fractions(Fraction(1, 50), 50), EVERY)
def test_scaling_bandwidths_scales_the_plan(topology: Topology, factor: Fraction, collective: str) -> None:
    scaled = replace(topology, links=tuple(replace(link, bandwidth=link.bandwidth * factor) for link in topology.links))
    before, after = solve(topology, collective), solve(scaled, collective)
    assert after.algbw == before.algbw * factor
    assert after.trees == before.trees


@settings(max_examples=40)
@given(networks(), st.data(), EVERY)
def test_a_link_more_never_hurts(topology: Topology, data: st.DataObject, collective: str) -> None:
    one, other = data.draw(st.lists(st.sampled_from(topology.ranks), min_size=2, max_size=2, unique=True))
    more = replace(topology, links=(*topology.links, Link(one, other, Fraction(data.draw(st.integers(1, 9))))))
    assert solve(more, collective).algbw >= solve(topology, collective).algbw


@settings(max_examples=40)
@given(networks())
def test_reduce_scatter_is_all_gather_reversed(topology: Topology) -> None:
    assert solve(topology, "reduce_scatter").algbw == solve(reversed_network(topology), "all_gather").algbw


def test_the_same_network_gives_the_same_plan() -> None:
    for symmetric in (True, False):
        first, second = (solve(fabric("dgx_h100:boxes=2"), "all_gather", symmetric=symmetric) for _ in range(2))
        assert first.trees == second.trees


def test_tolerance_takes_fewer_trees() -> None:
    topology = fabric("mi250:boxes=2,gcds=8")
    exact, rough = solve(topology, "all_gather"), solve(topology, "all_gather", tolerance=Fraction(1, 20))
    assert rough.trees_per_rank is not None
    assert exact.trees_per_rank is not None
    assert rough.trees_per_rank < exact.trees_per_rank
    assert rough.algbw * Fraction(21, 20) >= exact.algbw
    assert not rough.optimal
    assert rough.optimum == exact.algbw


def test_whole_trees_that_unbalance_a_switch_are_solved_at_a_larger_scale() -> None:
    # The smallest network known where rounding down leaves a switch that sends more than it receives (one tree).
    links = {(0, 1): 1, (0, 2): 1, (0, 3): 2, (1, 0): 1, (1, 2): 3, (2, 3): 4, (3, 0): 3, (3, 1): 3}
    topology = network(3, 1, links)
    weights, whole = dict.fromkeys(range(3), 1), whole_capacities(topology.capacities, Fraction(2, 3))
    assert carries(whole, weights, 4)
    with pytest.raises(CapacityLost):
        pack_forest(whole, weights, 4)
    plan = solve(topology, "all_gather", trees_per_rank=1, symmetric=False)
    assert plan.algbw < Fraction(3) / Fraction(2, 3)


@pytest.mark.parametrize(("name", "words"), [("disconnected", "g2, g3"), ("oneway", "g2"), ("single_gpu", "one rank")])
def test_networks_that_must_be_rejected(name: str, words: str) -> None:
    entry = REFERENCE["must_reject"][name]
    nodes = [*entry["compute"], *entry["switch"]]
    links = {(nodes.index(u), nodes.index(v)): bandwidth for u, v, bandwidth in entry["edges"]}
    topology = network(len(entry["compute"]), len(entry["switch"]), links)
    for collective in ("all_gather", "reduce_scatter", "all_reduce"):
        with pytest.raises(TopologyError, match=words) as caught:
            solve(topology, collective)
        assert isinstance(caught.value, Disconnected) == (name != "single_gpu")


def test_a_switch_that_sends_more_than_it_receives_is_named() -> None:
    topology = star([2, 5, 5, 5], [5, 5, 5, 5])
    with pytest.raises(UnbalancedSwitch, match=r"s0 .* receives 17 GB/s and sends 20 GB/s"):
        solve(topology, "all_gather")
    assert solve(topology, "reduce_scatter").optimal


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"collective": "scatter"}, "none of all_gather"),
        ({"method": "guess"}, "none of forest"),
        ({"trees_per_rank": 0}, "one or more"),
        ({"tolerance": Fraction(-1, 100)}, "negative"),
        ({"root": 1}, "no root"),
        ({"collective": "broadcast"}, "needs a root from 0 to 7"),
        ({"collective": "reduce", "root": 8}, "needs a root from 0 to 7"),
    ],
)
def test_arguments_without_sense_are_refused(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(PlansError, match=words):
        solve(fabric("ring:ranks=8"), **{"collective": "all_gather", **arguments})  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("symmetric", [True, False])
def test_a_cluster_of_256_ranks(symmetric: bool) -> None:
    plan = solve(fabric("dgx_a100:boxes=32"), "all_gather", symmetric=symmetric)
    assert plan.algbw == 256 / Fraction(31, 25)
    assert plan.optimal
    assert plan.depth <= 4
