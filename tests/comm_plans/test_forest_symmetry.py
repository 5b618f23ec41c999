"""Translations are symmetries that move every rank, and what is found with them is as good as what is found without."""

from dataclasses import replace
from fractions import Fraction

import pytest
from forest_networks import network, reference
from network_strategies import renumbered

from comm_plans.fabrics import fabric
from comm_plans.forest.few_trees import whole_capacities
from comm_plans.forest.numbering import box_by_box, translations_of
from comm_plans.forest.routes import routes_from
from comm_plans.forest.shallow_trees import ShallowTrees
from comm_plans.forest.symmetry import Translations, find_translations
from comm_plans.solve import solve
from comm_plans.topology import Topology

ORDERS = {
    "dgx_a100:boxes=4": 32,
    "dgx_h100:boxes=3": 24,
    "mi250": 4,
    "mi250:boxes=2": 8,
    "dgx1_v100": 4,
    "dgx1_v100:boxes=2": 8,
    "fat_tree": 16,
    "torus:shape=2x3x4": 24,
    "torus:shape=5x7": 35,
    "hypercube:dimensions=4": 16,
    "ring:ranks=7,directions=1": 7,
    "full_mesh:ranks=6": 6,
    "path:ranks=4": 2,
}


def translations(topology: Topology) -> Translations:
    return find_translations(topology.capacities, len(topology.ranks), len(topology.nodes))


@pytest.mark.parametrize("name", ORDERS)
def test_translations_keep_bandwidths_and_move_every_rank(name: str) -> None:
    topology = fabric(name)
    group = translations(topology)
    assert len(set(group.elements)) == ORDERS[name]
    assert group.elements[0] == tuple(range(len(topology.nodes)))
    for move in group.elements:
        assert {(move[u], move[v]): b for (u, v), b in topology.capacities.items()} == topology.capacities
    for move in group.elements[1:]:
        assert all(move[rank] != rank for rank in range(len(topology.ranks)))


def test_products_of_translations_are_translations() -> None:
    group = translations(fabric("dgx_h100:boxes=2"))
    elements = set(group.elements)
    for first in group.elements:
        for second in group.generators:
            assert tuple(second[node] for node in first) in elements


@pytest.mark.parametrize("name", ["primes_star5", "asym_star4_balanced", "big_primes_star6"])
def test_irregular_networks_have_the_identity_only(name: str) -> None:
    assert len(translations(reference(name)).elements) == 1


def test_one_slow_link_ends_the_symmetry_of_its_box() -> None:
    topology = fabric("dgx_a100:boxes=2")
    slow = tuple(
        replace(link, bandwidth=Fraction(10)) if topology.ranks[0] in (link.source, link.target) else link
        for link in topology.links
    )
    broken = replace(topology, links=slow)
    assert len(translations(broken).elements) < len(translations(topology).elements)
    plan = solve(broken, "all_gather")
    assert plan.optimal
    assert plan.algbw < solve(topology, "all_gather").algbw


@pytest.mark.parametrize("name", ["dgx_a100:boxes=3", "dgx_h100:boxes=2", "fat_tree"])
def test_shuffled_clusters_are_put_back_in_order(name: str) -> None:
    topology = renumbered(fabric(name), seed=5)
    ranks, nodes = len(topology.ranks), len(topology.nodes)
    group = translations_of(topology.capacities, ranks, nodes)
    assert len(set(group.elements)) == ranks
    for move in (*group.elements, *group.generators):
        assert {(move[u], move[v]): b for (u, v), b in topology.capacities.items()} == topology.capacities
    plan = solve(topology, "all_gather")
    assert plan.optimal
    assert plan.depth <= 4


def test_box_by_box_keeps_boxes_together_and_rails_in_step() -> None:
    topology = renumbered(fabric("dgx_h100:boxes=3"), seed=1)
    order = box_by_box(topology.capacities, 24, len(topology.nodes))
    assert sorted(order) == list(range(len(topology.nodes)))
    hangs_on = [{v for u, v in topology.capacities if u == rank} for rank in order[:24]]
    for box in range(3):
        assert len(set.intersection(*hangs_on[8 * box : 8 * box + 8])) == 1
    for rail in range(8):
        assert len(set.intersection(*hangs_on[rail::8])) == 1


def test_orbits_are_what_translations_join() -> None:
    topology = fabric("torus:shape=3x3")
    group = translations(topology)
    orbits = group.orbits(list(topology.capacities))
    assert sorted(set(orbits.values())) == [0, 1, 2, 3]
    for (u, v), orbit in orbits.items():
        assert {orbits[move[u], move[v]] for move in group.elements} == {orbit}


@pytest.mark.parametrize(
    "name", ["dgx_a100:boxes=2", "dgx_h100:boxes=2", "dgx1_v100:boxes=2", "torus:shape=4x4", "mi250"]
)
@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter"])
def test_symmetric_and_general_plans_are_equally_fast(name: str, collective: str) -> None:
    topology = fabric(name)
    symmetric, general = (solve(topology, collective, symmetric=flag) for flag in (True, False))
    assert symmetric.optimal
    assert general.optimal
    assert symmetric.algbw == general.algbw


def test_shallow_trees_are_images_of_each_other() -> None:
    topology = fabric("dgx_a100:boxes=3")
    group = translations(topology)
    grown = ShallowTrees(topology.capacities, 24, len(topology.nodes), group).grow(
        whole_capacities(topology.capacities, Fraction(2, 25)), 1
    )
    assert grown is not None
    first = grown[0]
    assert {batch.paths for batch in grown} == {
        tuple(tuple(move[node] for node in path) for path in first.paths) for move in group.elements
    }


def test_shallow_trees_are_refused_where_links_carry_too_little() -> None:
    topology = fabric("dgx_a100:boxes=3")
    shallow = ShallowTrees(topology.capacities, 24, len(topology.nodes), translations(topology))
    assert shallow.grow(whole_capacities(topology.capacities, Fraction(1, 25)), 1) is None


def test_ways_are_the_shortest_over_switches() -> None:
    # Ranks 0, 1, 2; switches 3 and 4 both join 0 and 2, switch 5 only lengthens a way; 0 and 1 are linked directly.
    ways = [(0, 1), (1, 3), (0, 3), (3, 2), (0, 4), (4, 2), (3, 5), (5, 2), (3, 1)]
    links = {link: 1 for u, v in ways for link in ((u, v), (v, u))}
    topology = network(3, 3, links)
    neighbours = [[v for u, v in topology.capacities if u == node] for node in range(6)]
    number = {link: place for place, link in enumerate(topology.capacities)}
    found = sorted(path for paths in routes_from(0, 3, neighbours, number).values() for path in paths)
    assert found == [(0, 1), (0, 3, 2), (0, 4, 2)]
