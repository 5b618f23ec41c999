"""The rate of an all-to-all on direct networks is the published or counted one, as an exact fraction with a proof."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from direct_networks import (
    REFERENCE,
    cube,
    de_bruijn,
    gen_kautz,
    network,
    pairwise_rate,
    random_network,
    reference,
    regular,
    rough_network,
    twisted_cube,
    uneven_cube,
    without,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from network_strategies import renumbered

from comm_plans.all_to_all.direct import DirectResult, direct_all_to_all
from comm_plans.all_to_all.direct.demands import demand_of
from comm_plans.all_to_all.direct.flow_problem import steady_problem, translations_of
from comm_plans.all_to_all.direct.lower_bound import bound_by
from comm_plans.direct_connect.fabric import wired
from comm_plans.errors import Disconnected
from comm_plans.fabrics import fabric
from comm_plans.topology import Link, Topology

OTHERS = {
    "genkautz(10,3)": (gen_kautz(10, 3), "4/25"),
    "genkautz(27,4)": (gen_kautz(27, 4), "51/761"),
    "debruijn(2,4)": (de_bruijn(2, 4), "3/77"),
    "twistedcube8": (twisted_cube(), "1/4"),
    "hypercube8_hetero": (uneven_cube(), "1/4"),
    "cube8 without 0-1": (without(network("cube8", 8, cube(3)), (0, 1), (1, 0)), "3/16"),
    "torus3x3 without 0→1": (without(fabric("torus:shape=3x3"), (0, 1)), "5/18"),
    "rr3_n12": (regular("rr3_n12"), "1/16"),
    "rr4_n16": (regular("rr4_n16"), "2/21"),
    "torus4x8": (fabric("torus:shape=4x8"), "1/32"),
    "torus4x4x4": (fabric("torus:shape=4x4x4"), "1/32"),
    "torus8x8": (fabric("torus:shape=8x8"), "1/64"),
    "torus8x4x4": (fabric("torus:shape=8x4x4"), "1/128"),
    "torus16x16": (fabric("torus:shape=16x16"), "1/512"),
    "genkautz(64,4)": (gen_kautz(64, 4), "15/691"),
}


def assert_proved(result: DirectResult, rate: Fraction) -> None:
    assert result.pair_rate == rate
    assert result.bound == rate
    assert result.exact
    assert result.duality_gap == 0
    assert result.algbw == len(result.topology.ranks) * rate


@pytest.mark.parametrize("name", REFERENCE["topologies"])
def test_reference_networks(name: str) -> None:
    entry = REFERENCE["topologies"][name]
    rate = Fraction(entry["F_frac"])
    assert abs(float(rate) - entry["F"]) < 1e-7
    assert_proved(direct_all_to_all(reference(name)), rate)


@pytest.mark.parametrize("name", OTHERS)
def test_other_known_networks(name: str) -> None:
    topology, rate = OTHERS[name]
    assert_proved(direct_all_to_all(topology), Fraction(rate))


@pytest.mark.parametrize("seed", range(40))
def test_one_flow_a_source_is_as_good_as_one_a_pair(seed: int) -> None:
    result = direct_all_to_all(random_network(seed, most=6))
    assert float(result.pair_rate) == pytest.approx(pairwise_rate(result.topology), rel=1e-7)
    assert float(result.duality_gap) < 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
def test_one_flow_a_source_is_as_good_as_one_a_pair_on_up_to_eight_ranks(seed: int) -> None:
    result = direct_all_to_all(random_network(seed))
    assert float(result.pair_rate) == pytest.approx(pairwise_rate(result.topology), rel=1e-7)
    assert float(result.duality_gap) < 1e-7


@pytest.mark.parametrize("seed", range(20))
def test_traffic_of_any_proportions(seed: int) -> None:
    topology = random_network(seed, most=5)
    ranks = len(topology.ranks)
    traffic = np.random.default_rng(seed).integers(0, 5, (ranks, ranks)) * 10**6
    traffic[0, 1] += 1
    result = direct_all_to_all(topology, traffic)
    between = traffic - np.diag(np.diag(traffic))
    largest = between.max()
    assert float(result.pair_rate) == pytest.approx(pairwise_rate(topology, between), rel=1e-6)
    assert result.seconds == Fraction(int(largest)) / result.pair_rate / 10**9
    assert float(result.algbw) == pytest.approx(traffic.sum(axis=1).max() / 1e9 / float(result.seconds))


def test_equal_traffic_is_as_fast_as_none() -> None:
    result = direct_all_to_all(fabric("torus:shape=8x8"), np.full((64, 64), 10**6))
    assert (result.pair_rate, result.exact) == (Fraction(1, 64), True)
    assert len(result.translations.elements) == 64
    assert result.algbw == 1
    assert result.seconds == Fraction(64, 1000)


def test_a_byte_beside_gigabytes_arrives_too() -> None:
    traffic = np.full((8, 8), 2**33)
    traffic[0, 4], traffic[3, 5] = 1, 0
    result = direct_all_to_all(fabric("ring:ranks=8"), traffic)
    assert float(result.duality_gap) < 1e-6
    assert [0, 4] in result.routes.pair.tolist()
    assert [3, 5] not in result.routes.pair.tolist()


@pytest.mark.parametrize("seed", range(80))
def test_rough_networks_and_traffic_are_planned_or_refused(seed: int) -> None:
    topology = rough_network(seed)
    sizes = [0, 1, 1000, 2**30, 2**40]
    traffic = np.random.default_rng(seed).choice(sizes, (len(topology.ranks),) * 2)
    traffic[0, 1] = 2**40
    try:
        result = direct_all_to_all(topology, traffic if seed % 2 else None)
    except Disconnected:
        return
    assert 0 <= result.duality_gap < 1e-5


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6))
def test_numbering_does_not_matter(seed: int) -> None:
    topology = random_network(seed, most=6)
    other = direct_all_to_all(renumbered(topology, seed))
    assert float(other.pair_rate) == pytest.approx(float(direct_all_to_all(topology).pair_rate), rel=1e-7)


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), factor=st.sampled_from([Fraction(25), Fraction(123, 5), Fraction(1, 1000)]))
def test_rates_scale_with_bandwidths_and_more_links_never_hurt(seed: int, factor: Fraction) -> None:
    topology = random_network(seed, most=6)
    rate = direct_all_to_all(topology).pair_rate
    scaled = [Link(link.source, link.target, link.bandwidth * factor) for link in topology.links]
    faster = direct_all_to_all(Topology("scaled", topology.ranks, (), tuple(scaled)))
    assert float(faster.pair_rate) == pytest.approx(float(rate * factor), rel=1e-7)
    more = Topology("more", topology.ranks, (), (*topology.links, Link("g0", "g1", Fraction(1))))
    assert float(direct_all_to_all(more).pair_rate) >= float(rate) * (1 - 1e-7)


@pytest.mark.parametrize(
    ("name", "rate"),
    [("star:ranks=5", "1/4"), ("dgx_a100:boxes=2", "25/8"), ("fat_tree", "1/15"), ("dragonfly", "1/36")],
)
def test_switches_forward(name: str, rate: str) -> None:
    assert_proved(direct_all_to_all(fabric(name)), Fraction(rate))


def test_wirings_that_all_nodes_see_alike() -> None:
    result = direct_all_to_all(wired("L^2(C(16,3,4))"))
    assert float(result.duality_gap) < 1e-6
    assert len(result.translations.elements) == 16


@pytest.mark.slow
def test_a_thousand_ranks() -> None:
    result = direct_all_to_all(fabric("torus:shape=10x10x10"))
    assert_proved(result, Fraction(1, 1250))
    assert result.solve_seconds < 25


@pytest.mark.parametrize(("name", "failed"), [("torus4x4", (0, 1)), ("K4,4", (0, 4))])
def test_a_new_plan_after_a_link_failed(name: str, failed: tuple[int, int]) -> None:
    healthy = reference(name)
    direct_all_to_all(healthy)
    result = direct_all_to_all(without(healthy, failed, failed[::-1]))
    assert result.pair_rate == Fraction(REFERENCE["topologies"][f"{name}_cut({failed[0]},{failed[1]})"]["F_frac"])
    assert result.solve_seconds < 1


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "rate"), [(96, 0.012507), (128, 0.0086160), (256, 0.0040371)])
def test_large_networks_come_within_their_gap(nodes: int, rate: float) -> None:
    result = direct_all_to_all(gen_kautz(nodes, 4))
    assert float(result.pair_rate) == pytest.approx(rate, abs=5e-8 if nodes > 96 else 5e-7)
    assert 0 <= result.duality_gap < 1e-5


def test_any_lengths_prove_a_bound() -> None:
    topology = twisted_cube()
    problem = steady_problem(topology, demand_of(topology, None), translations_of(topology, alike=False))
    by_distance = bound_by(problem, np.ones(len(problem.capacity), dtype=np.int64))
    assert 1 / by_distance == Fraction(3, 11)  # the plain distance bound, which is not tight here
    uneven = np.random.default_rng(0).integers(1, 9, len(problem.capacity))
    assert bound_by(problem, uneven) <= 4


def test_same_question_same_answer() -> None:
    one, other = (direct_all_to_all(gen_kautz(16, 4)).routes for _ in range(2))
    assert np.array_equal(one.arc, other.arc)
    assert np.array_equal(one.share, other.share)
