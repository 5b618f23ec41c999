"""The canonical key forgets numbering and noise, and nothing else."""

import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from network_strategies import networks, renumbered

from comm_plans.canonical import canonical_key, mapping_between
from comm_plans.fabrics import fabric
from comm_plans.noise import rung, rungs, within_noise
from comm_plans.topology import Link, Switch, Topology

FABRICS = ["dgx_a100:boxes=2", "dgx_h100:boxes=2", "mi250", "torus:shape=4x4", "dragonfly", "fat_tree", "ring:ranks=9"]


def is_same_network(one: Topology, other: Topology, mapping: tuple[int, ...]) -> bool:
    moved = {(mapping[a], mapping[b]): capacity for (a, b), capacity in one.capacities.items()}
    return sorted(mapping) == list(range(len(one.nodes))) and moved == other.capacities


@given(networks(), st.integers(0, 1000))
def test_numbering_does_not_matter(topology, seed):
    other = renumbered(topology, seed)
    mapping = mapping_between(topology, other)
    assert topology.key == other.key
    assert mapping is not None
    assert is_same_network(topology, other, mapping)


@pytest.mark.parametrize("name", FABRICS)
@pytest.mark.parametrize("seed", range(2))
def test_fabrics_measured_on_renumbered_clusters_share_a_key(name, seed):
    topology = fabric(name)
    measured = renumbered(topology, seed, noise=0.01)
    assert topology.key == measured.key
    assert mapping_between(topology, measured) is not None


def test_equal_bandwidths_are_matched_before_similar_ones():
    star = Topology(
        "star",
        ("a", "b", "c"),
        (Switch("s"),),
        tuple(
            Link(*ends, Fraction(speed))
            for name, speed in (("a", "9973"), ("b", "9967"), ("c", "9949"))
            for ends in ((name, "s"), ("s", name))
        ),
    )
    for seed in range(6):
        other = renumbered(star, seed)
        assert is_same_network(star, other, mapping_between(star, other))


@given(networks(), st.data())
def test_a_changed_link_changes_the_key(topology, data):
    if not topology.links:
        return
    place = data.draw(st.integers(0, len(topology.links) - 1))
    faster = replace(topology.links[place], bandwidth=topology.links[place].bandwidth * 3)
    changed = replace(topology, links=(*topology.links[:place], faster, *topology.links[place + 1 :]))
    missing = replace(topology, links=(*topology.links[:place], *topology.links[place + 1 :]))
    # Three times faster, the link has a bandwidth that no link had before: the two networks cannot be alike.
    for other in (changed, missing):
        assert mapping_between(topology, other) is None
        assert topology.key != other.key


def undirected(name: str, count: int, edges: list[tuple[int, int]]) -> Topology:
    names = tuple(f"g{i}" for i in range(count))
    links = [Link(names[a], names[b], Fraction(1)) for one, other in edges for a, b in ((one, other), (other, one))]
    return Topology(name, names, (), tuple(links))


def grid_graph(name: str, steps: list[tuple[int, int]]) -> Topology:
    """Ranks on a 4 × 4 torus, joined to those that lie one of the steps away."""
    edges = {
        tuple(sorted((4 * x + y, 4 * ((x + dx) % 4) + (y + dy) % 4)))
        for x in range(4)
        for y in range(4)
        for dx, dy in steps
    }
    return undirected(name, 16, sorted(edges))


PAIRS = {
    "hexagon and two triangles": (
        undirected("hexagon", 6, [(i, (i + 1) % 6) for i in range(6)]),
        undirected("triangles", 6, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)]),
    ),
    "prism and utility graph": (
        undirected("prism", 6, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3), (1, 4), (2, 5)]),
        undirected("utility", 6, [(a, b) for a in range(3) for b in range(3, 6)]),
    ),
    # The least pair of graphs with one spectrum.
    "cospectral": (
        undirected("star", 5, [(0, i) for i in range(1, 5)]),
        undirected("square and a point", 5, [(0, 1), (1, 2), (2, 3), (3, 0)]),
    ),
    # Strongly regular with the same parameters (16, 6, 2, 2): blind spot of refinement with one rank singled out.
    "Shrikhande and rook": (
        grid_graph("Shrikhande", [(0, 1), (1, 0), (1, 1)]),
        grid_graph("rook", [(0, 1), (0, 2), (1, 0), (2, 0)]),
    ),
    "tori of one size": (fabric("torus:shape=6x6"), fabric("torus:shape=4x9")),
    "large tori of one size": (fabric("torus:shape=16x16"), fabric("torus:shape=8x32")),
    "one-way rings": (fabric("ring:ranks=6,directions=1"), undirected("pairs", 6, [(0, 1), (2, 3), (4, 5)])),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_different_networks_never_share_a_key(pair):
    one, other = PAIRS[pair]
    assert one.key != other.key
    assert mapping_between(one, other) is None


@pytest.mark.parametrize("pair", PAIRS)
def test_nor_does_the_mapping_rely_on_the_key(pair):
    for topology in PAIRS[pair]:
        other = renumbered(topology, 5)
        mapping = mapping_between(topology, other)
        assert topology.key == other.key
        assert mapping is not None
        assert is_same_network(topology, other, mapping)


def test_what_nodes_can_do_matters_but_not_what_they_are_called():
    ranks, links = (
        ("a", "b"),
        tuple(Link(*pair, Fraction(1)) for pair in (("a", "s"), ("s", "a"), ("b", "s"), ("s", "b"))),
    )
    plain, able = Topology("t", ranks, (Switch("s"),), links), Topology("t", ranks, (Switch("s", True),), links)
    as_rank = Topology("t", ("a", "b", "s"), (), links)
    assert len({plain.key, able.key, as_rank.key}) == 3
    slow = replace(
        plain, name="u", hosts={"h": ("a", "b")}, links=tuple(replace(x, latency=Fraction(1)) for x in links)
    )
    assert slow.key == plain.key


def test_marks_set_ranks_apart():
    path = fabric("path:ranks=3")
    keys = [canonical_key(path, [str(rank == root) for rank in range(3)]) for root in range(3)]
    assert keys[0] == keys[2] != keys[1]
    assert mapping_between(path, path, ["r", "", ""], ["", "", "r"]) == (2, 1, 0)
    assert mapping_between(path, path, ["r", "", ""], ["", "r", ""]) is None


def test_a_thousand_ranks_take_seconds():
    topology = fabric("dgx_h100:boxes=128")
    other = renumbered(topology, 1)
    started = time.perf_counter()
    assert topology.key == other.key
    mapping = mapping_between(topology, other)
    assert mapping is not None
    assert is_same_network(topology, other, mapping)
    assert time.perf_counter() - started < 60


@pytest.mark.parametrize(
    "nominal", ["0.5", "1", "6.25", "12.5", "16", "24", "25", "32", "46", "50", "100", "200", "300", "450", "900"]
)
def test_nominal_rates_stand_on_a_rung_with_room_for_noise(nominal):
    value = Fraction(nominal)
    assert rung(value) == value
    for factor in ("0.993", "0.998", "1.002", "1.007"):
        assert rung(value * Fraction(factor)) == value


def test_rungs_join_noise_and_keep_rates_apart():
    measured = np.array([24.6, 25.1, 25.3, 299.0, 303.0, 50.0, 25.0])
    assert rungs(measured) == [25, 25, 25, 300, 300, 50, 25]
    assert within_noise(Fraction(25), Fraction(247, 10))
    assert not within_noise(Fraction(25), Fraction(27))


@given(st.fractions(Fraction(1, 10**6), Fraction(10**9)))
def test_a_rung_is_near_and_stays_put(value):
    assert rung(rung(value)) == rung(value)
    assert abs(rung(value) - value) <= value * Fraction(26, 1000)
