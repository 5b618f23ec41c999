"""Other ways of routing, simple bounds and slow hosts: each at its known value."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from direct_networks import REFERENCE, cube, gen_kautz, network, random_network, reference, twisted_cube, without

from comm_plans.all_to_all.direct import direct_all_to_all
from comm_plans.all_to_all.direct.baselines import (
    equal_split_rate,
    least_loaded_paths,
    rate_of,
    rates_of_others,
    shortest_path_flow,
)
from comm_plans.all_to_all.direct.dimension_order import dimension_order_paths, torus_shape
from comm_plans.all_to_all.direct.host_limits import with_host_limit
from comm_plans.all_to_all.direct.upper_bounds import cut_bound, distance_bound, moore_bound, node_bound
from comm_plans.errors import PlansError
from comm_plans.fabrics import fabric
from comm_plans.topology import Link, Switch, Topology

TOPOLOGIES = REFERENCE["topologies"]
# Rates that hosts leave, for networks of 1 GB/s links: host limit → (cards forward, hosts forward).
LIMITED = {
    "K4,4": {1: ("1/7", "1/10"), 2: ("2/7", "1/5"), 3: ("2/5", "3/10")},
    "torus3x3": {1: ("1/8", "1/12"), 2: ("1/4", "1/6"), 3: ("1/3", "1/4")},
    "hypercube8": {1: ("1/7", "1/12"), 2: ("1/4", "1/6")},
    "petersen": {1: ("1/9", "1/15"), 2: ("1/5", "2/15")},
    "genkautz(8,4)": {1: ("1/7", "1/14"), 2: ("2/7", "1/7"), 3: ("2/7", "3/14")},
    "ring6": {1: ("1/5", "1/9")},
}


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_shortest_paths_and_equal_split(name: str) -> None:
    topology, entry = reference(name), TOPOLOGIES[name]
    assert float(rate_of(topology, shortest_path_flow(topology))) == pytest.approx(entry["F_allshortest"], abs=1e-7)
    assert equal_split_rate(topology) == pytest.approx(entry["F_ewsp"], abs=1e-7)


def test_detours_pay() -> None:
    failed = without(fabric("torus:shape=3x3"), (0, 1))
    assert rate_of(failed, shortest_path_flow(failed)) == Fraction(1, 4)
    assert direct_all_to_all(failed).pair_rate == Fraction(5, 18)
    assert rate_of(gen_kautz(8, 2), shortest_path_flow(gen_kautz(8, 2))) == Fraction(1, 11)
    assert direct_all_to_all(gen_kautz(8, 2)).pair_rate == Fraction(1, 9)


@pytest.mark.parametrize("name", ["torus4x4", "genkautz(16,4)", "K4,4", "ring8_cut(0,1)"])
def test_single_paths_stay_below_the_optimum(name: str) -> None:
    topology = reference(name)
    assert rate_of(topology, least_loaded_paths(topology)) <= direct_all_to_all(topology).pair_rate


def test_dimension_order_on_tori() -> None:
    """Along a ring of 5 each link carries 1 + 2 = 3 pairs, of each row; on a ring of 4 a tie loads one way: 1 + 2."""
    for size, load in ((5, 15), (4, 12)):
        topology = fabric(f"torus:shape={size}x{size}")
        assert rate_of(topology, dimension_order_paths(topology, (size, size))) == Fraction(1, load)
    with pytest.raises(PlansError, match="no torus of shape 3x5"):
        dimension_order_paths(fabric("ring:ranks=15"), (3, 5))
    with pytest.raises(PlansError, match="no torus of shape 3x3"):
        dimension_order_paths(fabric("ring:ranks=15"), (3, 3))


def test_tori_are_recognised() -> None:
    shapes = {"ring:ranks=6": (6,), "torus:shape=3x4": (3, 4), "torus:shape=4x3x2": (4, 3, 2), "hypercube": (2, 2, 2)}
    assert {name: torus_shape(fabric(name)) for name in shapes} == shapes
    for name in ("full_mesh", "ring:ranks=6,directions=1", "star", "dgx_a100", "path:ranks=4"):
        assert torus_shape(fabric(name)) is None


@pytest.mark.parametrize("seed", range(10))
def test_no_other_way_beats_the_optimum_of_skewed_traffic(seed: int) -> None:
    topology = random_network(seed, most=6)
    ranks = len(topology.ranks)
    traffic = np.random.default_rng(seed).integers(0, 1000, (ranks, ranks))
    best = float(direct_all_to_all(topology, traffic).bound)
    rates = dict(rates_of_others(topology, traffic))
    assert max(rates.values()) <= best * (1 + 1e-9)
    assert rates["all shortest paths alike"] <= rates["shortest paths only"] * (1 + 1e-6)


def test_other_ways_carry_the_traffic_given() -> None:
    """All 8 bytes of a ring of four go to the rank opposite; halves go both ways, or all forwards."""
    traffic = np.zeros((4, 4), dtype=np.int64)
    traffic[0, 2] = 8
    assert dict(rates_of_others(fabric("ring:ranks=4"), traffic)) == pytest.approx(
        {"shortest paths only": 2, "all shortest paths alike": 2, "least-loaded paths": 1, "dimension order": 1}
    )


def test_a_switch_that_nothing_reaches_changes_nothing() -> None:
    ring = fabric("ring:ranks=4")
    sources = Switch("s1"), Switch("s2")
    links = (*ring.links, Link("s1", "s2", Fraction(1)), Link("s2", "s1", Fraction(1)), Link("s2", "g0", Fraction(1)))
    odd = Topology("odd", ring.ranks, sources, links)
    assert equal_split_rate(odd) == equal_split_rate(ring) == 0.5
    assert rate_of(odd, shortest_path_flow(odd)) == Fraction(1, 2)


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_simple_bounds(name: str) -> None:
    topology, entry = reference(name), TOPOLOGIES[name]
    rate = direct_all_to_all(topology).pair_rate
    assert float(distance_bound(topology)) == pytest.approx(entry["bound_distance"], abs=1e-9)
    assert float(node_bound(topology)) == pytest.approx(entry["bound_node"], abs=1e-9)
    assert min(distance_bound(topology), node_bound(topology)) >= rate
    if "bound_moore" in entry:
        moore = moore_bound(entry["n"], len(entry["edges"]) // entry["n"])
        assert float(moore) == pytest.approx(entry["bound_moore"], abs=1e-9)
    if "bound_cut" in entry:
        cut, side = cut_bound(topology)
        assert float(cut) == pytest.approx(entry["bound_cut"], abs=1e-9)
        inside = {topology.index(node) for node in side}
        crossing = sum(b for (tail, head), b in topology.capacities.items() if tail in inside and head not in inside)
        assert cut == crossing / (len(inside) * (entry["n"] - len(inside)))


def test_moore_bounds_of_degree_four() -> None:
    published = {16: 0.15385, 27: 0.07407, 32: 0.05797, 64: 0.024242, 96: 0.014706, 128: 0.01, 256: 0.004386}
    for nodes, bound in published.items():
        assert float(moore_bound(nodes, 4)) == pytest.approx(bound, abs=5e-6)


def test_the_distance_bound_can_be_out_of_reach() -> None:
    assert distance_bound(twisted_cube()) == Fraction(3, 11)
    assert distance_bound(network("cube8", 8, cube(3))) == Fraction(1, 4)


def test_too_many_cuts() -> None:
    with pytest.raises(PlansError, match="27 nodes; all cuts are tried up to 18"):
        cut_bound(gen_kautz(27, 4))


@pytest.mark.parametrize(("name", "limit"), [(name, limit) for name, rates in LIMITED.items() for limit in rates])
def test_slow_hosts(name: str, limit: int) -> None:
    for forwarding, rate in zip(("nic", "host"), LIMITED[name][limit], strict=True):
        result = direct_all_to_all(with_host_limit(reference(name), Fraction(limit), forwarding))
        assert result.pair_rate == Fraction(rate)
        assert result.exact


@pytest.mark.parametrize("entry", REFERENCE["host_bottleneck"])
def test_slow_hosts_of_the_reference(entry: dict) -> None:
    for forwarding in ("nic", "host"):
        limited = with_host_limit(reference(entry["topology"]), Fraction(entry["h"]), forwarding)
        expected = entry[f"F_{forwarding}_forwarding"]
        assert float(direct_all_to_all(limited).pair_rate) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("seed", range(10))
def test_what_slow_hosts_allow_at_most(seed: int) -> None:
    topology = random_network(seed, most=6)
    ranks = len(topology.ranks)
    cards = direct_all_to_all(with_host_limit(topology, Fraction(1), "nic")).pair_rate
    hosts = direct_all_to_all(with_host_limit(topology, Fraction(1), "host")).pair_rate
    assert float(hosts) <= float(cards) * (1 + 1e-9)
    assert cards <= Fraction(1, ranks - 1)
    assert float(cards) <= float(direct_all_to_all(topology).pair_rate) * (1 + 1e-7)


def test_host_limits_that_make_no_sense() -> None:
    with pytest.raises(PlansError, match="neither nic nor host"):
        with_host_limit(fabric("ring"), Fraction(1), "gpu")
    with pytest.raises(PlansError, match="lets nothing through"):
        with_host_limit(fabric("ring"), Fraction(0), "nic")
    assert np.isfinite(float(with_host_limit(fabric("ring"), Fraction(1), "nic").links[0].bandwidth))
