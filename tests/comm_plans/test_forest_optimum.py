"""The exact optimum and the exact best few trees, against published values and brute force over all cuts."""

from fractions import Fraction

import pytest
from forest_networks import REFERENCE, cut_bound, leaving, network, networks, reference
from hypothesis import given, settings
from hypothesis import strategies as st

from comm_plans.fabrics import fabric
from comm_plans.forest.few_trees import least_scales, optimal_tree_counts, sufficient_trees, whole_capacities
from comm_plans.forest.general import carries
from comm_plans.forest.optimum import Optimum, find_optimum
from comm_plans.topology import Topology

NAMES = list(REFERENCE["topologies"])


def equal_shards(topology: Topology) -> dict[int, int]:
    return dict.fromkeys(range(len(topology.ranks)), 1)


def optimum(topology: Topology) -> Optimum:
    return find_optimum(topology.capacities, equal_shards(topology), len(topology.nodes))


@pytest.mark.parametrize("name", NAMES)
def test_reference_optimum_and_number_of_trees(name: str) -> None:
    topology, entry = reference(name), REFERENCE["topologies"][name]
    found = optimum(topology)
    assert found.inverse_rate == Fraction(entry["inv_x"])
    inside = set(found.cut)
    ranks = [rank for rank in range(len(topology.ranks)) if rank in inside]
    assert Fraction(len(ranks)) / leaving(topology, inside) == found.inverse_rate
    trees = sufficient_trees(topology.capacities, found.inverse_rate)
    assert (trees, found.inverse_rate * trees) == (entry["k"], Fraction(entry["U"]))


@pytest.mark.parametrize("name", NAMES)
def test_reference_best_of_exactly_k_trees(name: str) -> None:
    topology = reference(name)
    weights, nodes, best = equal_shards(topology), len(topology.nodes), optimum(topology).inverse_rate
    for trees, entry in REFERENCE["topologies"][name]["fixed_k_exact"].items():
        scale = next(least_scales(topology.capacities, weights, nodes, int(trees), best))
        assert scale == Fraction(entry["U"])
        assert scale / int(trees) == Fraction(entry["inv_x_k"])


@pytest.mark.parametrize("boxes", [2, 3, 4, 8, 16, 32])
def test_dgx_a100_family(boxes: int) -> None:
    assert optimum(fabric(f"dgx_a100:boxes={boxes}")).inverse_rate == max(
        Fraction(8 * boxes - 1, 325), Fraction(boxes - 1, 25)
    )


@st.composite
def strongly_connected(draw: st.DrawFn) -> Topology:
    """Any directed bandwidths (switches unbalanced too) on a ring through all nodes."""
    ranks, switches = draw(st.integers(2, 5)), draw(st.integers(0, 3))
    nodes = ranks + switches
    pairs = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)).filter(lambda pair: pair[0] != pair[1])
    links = draw(st.dictionaries(pairs, st.integers(1, 9), max_size=16))
    links |= {(node, (node + 1) % nodes): draw(st.integers(1, 9)) for node in range(nodes)}
    return network(ranks, switches, links)


@settings(max_examples=300)
@given(strongly_connected(), st.data())
def test_random_networks_equal_brute_force_over_all_cuts(topology: Topology, data: st.DataObject) -> None:
    ranks = len(topology.ranks)
    weights = data.draw(st.lists(st.integers(0, 3), min_size=ranks, max_size=ranks).filter(any))
    found = find_optimum(topology.capacities, dict(enumerate(weights)), len(topology.nodes))
    assert sum(weights) / found.inverse_rate == cut_bound(topology, weights)


@settings(max_examples=60)
@given(networks(), st.integers(1, 4))
def test_no_smaller_scale_carries_the_trees(topology: Topology, trees: int) -> None:
    weights, nodes, best = equal_shards(topology), len(topology.nodes), optimum(topology).inverse_rate
    scale = next(least_scales(topology.capacities, weights, nodes, trees, best))
    roots = dict.fromkeys(weights, trees)
    assert carries(whole_capacities(topology.capacities, scale), roots, nodes)
    just_below = scale - Fraction(1, 10**9)
    assert not carries(whole_capacities(topology.capacities, just_below), roots, nodes)


@settings(max_examples=60)
@given(networks())
def test_optimal_tree_counts_reach_the_optimum_with_whole_trees(topology: Topology) -> None:
    weights, nodes, best = equal_shards(topology), len(topology.nodes), optimum(topology).inverse_rate
    counts = list(optimal_tree_counts(topology.capacities, weights, nodes, best))
    assert counts == sorted(counts)
    assert counts[-1] == sufficient_trees(topology.capacities, best)
    for trees in counts:
        capacities = whole_capacities(topology.capacities, best * trees)
        assert carries(capacities, dict.fromkeys(weights, trees), nodes)


def test_exact_bandwidths_beyond_floats() -> None:
    tiny = Fraction(1, 3 * 10**9)
    links = {(0, 1): 10**9 + tiny, (1, 0): 10**9 + tiny}
    assert find_optimum(links, {0: 1, 1: 1}, 2).inverse_rate == 1 / (10**9 + tiny)


def test_bandwidths_that_do_not_fit_are_refused() -> None:
    links = {(0, 1): Fraction(2**61), (1, 0): Fraction(2**61 - 1)}
    with pytest.raises(OverflowError, match="coarser grid"):
        find_optimum(links, {0: 1, 1: 1}, 2)
