"""all_reduce reaches the optimum of its linear program, exactly, and every point is summed where it is sent from."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from forest_networks import REFERENCE, network, networks, reference, star
from hypothesis import given, settings
from scipy.optimize import linprog

from comm_plans.forest import division
from comm_plans.forest.all_reduce import all_reduce
from comm_plans.forest.division import divide
from comm_plans.forest.families import family
from comm_plans.forest.partitions import partition_bound
from comm_plans.plan import Plan
from comm_plans.solve import solve
from comm_plans.topology import Topology
from comm_plans.verifier import verify

WITH_LP = [name for name, entry in REFERENCE["topologies"].items() if entry.get("allreduce_lp")]
GAINS = {
    "path4": "1",
    "primes_star5": "7",
    "repo_mi250_2x8": "128",
    "asym_star4_balanced": "7/2",
    "big_primes_star6": "5969",
}


def flow_program(topology: Topology) -> float:
    """The all_reduce program with a flow to every rank , in floats: roots, broadcast and reduce
    parts of each link, then one flow per rank and direction."""
    ranks, nodes, links = len(topology.ranks), len(topology.nodes), list(topology.capacities)
    size = len(links)
    flows = ranks + 2 * size
    columns = flows + 2 * ranks * size
    upper, limits, equal = [], [], []

    def row(**parts: float) -> np.ndarray:
        return np.zeros(columns)

    for place, link in enumerate(links):
        share = row()
        share[[ranks + place, ranks + size + place]] = 1
        upper.append(share)
        limits.append(float(topology.capacities[link]))
    for switch, turn in product(range(ranks, nodes), (0, 1)):
        balance = row()
        for place, (u, v) in enumerate(links):
            balance[ranks + turn * size + place] = (1 if turn == 0 else -1) * ((u == switch) - (v == switch))
        upper.append(balance)
        limits.append(0.0)
    for rank, turn in product(range(ranks), (0, 1)):
        first = flows + (turn * ranks + rank) * size
        for place in range(size):
            within = row()
            within[first + place], within[ranks + turn * size + place] = 1, -1
            upper.append(within)
            limits.append(0.0)
        for node in set(range(nodes)) - {rank}:
            kept = row()
            for place, (u, v) in enumerate(links):
                kept[first + place] = (1 if turn == 0 else -1) * ((u == node) - (v == node))
            if node < ranks:
                kept[node] = -1
            equal.append(kept)
    gains = row()
    gains[:ranks] = -1
    answer = linprog(gains, np.array(upper), limits, np.array(equal), np.zeros(len(equal)))
    return float(-answer.fun)


def partitions(items: list[int]) -> Iterator[list[list[int]]]:
    """Every way to split items into groups."""
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        yield [[items[0]], *rest]
        for place, group in enumerate(rest):
            yield [*rest[:place], [items[0], *group], *rest[place + 1 :]]


def tree_packing_number(topology: Topology) -> Fraction:
    """Spanning trees that fit a mirrored network without switches (Nash-Williams, Tutte), over all partitions."""
    ratios = []
    for groups in partitions(list(range(len(topology.ranks)))):
        group = {rank: place for place, ranks in enumerate(groups) for rank in ranks}
        if len(groups) > 1:
            crossing = sum(b for (u, v), b in topology.capacities.items() if group[u] < group[v])
            ratios.append(Fraction(crossing, len(groups) - 1))
    return min(ratios)


@pytest.mark.parametrize("name", WITH_LP)
def test_the_reference_value_is_reached_exactly(name: str) -> None:
    reported = REFERENCE["topologies"][name]["allreduce_lp"]
    plan = solve(reference(name), "all_reduce")
    assert plan.optimal
    assert plan.algbw == Fraction(reported["lp_algbw_plain_switches"]).limit_denominator(1000)
    assert plan.algbw >= Fraction(reported["rs_ag_algbw"]).limit_denominator(1000)


@pytest.mark.parametrize(("name", "value"), GAINS.items())
def test_unequal_ranks_gain_over_two_phases(name: str, value: str) -> None:
    topology = reference(name)
    plan, gather = solve(topology, "all_reduce"), solve(topology, "all_gather")
    assert plan.algbw == Fraction(value) > gather.algbw / 2
    assert plan.optimal
    assert sum(plan.shards) == 1


@settings(max_examples=25)
@given(networks(most_ranks=4))
def test_random_networks_equal_the_program_with_flows(topology: Topology) -> None:
    plan = solve(topology, "all_reduce")
    assert plan.optimal
    assert float(plan.algbw) == pytest.approx(flow_program(topology), rel=1e-7)


@settings(max_examples=50)
@given(networks(most_switches=0, mirrored=True))
def test_mirrored_networks_equal_brute_force_tree_packing(topology: Topology) -> None:
    plan = solve(topology, "all_reduce")
    assert plan.algbw == tree_packing_number(topology)
    assert plan.optimal


@settings(max_examples=50)
@given(networks())
def test_no_partition_bounds_below_the_optimum(topology: Topology) -> None:
    assert solve(topology, "all_reduce").algbw <= partition_bound(topology)


def test_scaled_bandwidths_scale_the_optimum() -> None:
    links = {(0, 1): 3, (1, 0): 5, (1, 2): 2, (2, 1): 7, (2, 0): 4, (0, 2): 1}
    plain = solve(network(3, 0, links), "all_reduce").algbw
    scaled = network(3, 0, {link: 7 * bandwidth for link, bandwidth in links.items()})
    assert solve(scaled, "all_reduce").algbw == 7 * plain


def test_measured_bandwidths_are_solved_exactly() -> None:
    document = {
        "name": "measured",
        "ranks": ["a", "b", "c", "d"],
        "switches": ["s"],
        "cables": [
            ["a", "s", "24.61"],
            ["b", "s", "23.97"],
            ["c", "s", "24.6"],
            ["d", "s", "12.3"],
            ["a", "b", "91.7"],
        ],
    }
    topology = Topology.from_document(document)
    plan = solve(topology, "all_reduce")
    assert plan.optimal
    assert float(plan.algbw) == pytest.approx(flow_program(topology), rel=1e-9)


def test_asked_for_trees_are_two_phases_and_say_how_far_from_the_optimum() -> None:
    plan = solve(reference("primes_star5"), "all_reduce", trees_per_rank=1)
    assert plan.trees_per_rank == 1
    assert (plan.algbw, plan.optimum, plan.optimal) == (Fraction(35, 8), 7, False)
    assert all((tree.share * 5).denominator == 1 for tree in plan.trees)


def test_tolerance_keeps_two_phases_that_are_near_enough() -> None:
    topology = reference("primes_star5")
    assert solve(topology, "all_reduce", tolerance=Fraction(60, 100)).algbw == Fraction(35, 8)
    assert solve(topology, "all_reduce", tolerance=Fraction(59, 100)).algbw == 7


def test_a_network_beyond_the_program_is_not_called_optimal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(division, "MOST_COLUMNS", 10)
    topology = reference("primes_star5")
    plan = solve(topology, "all_reduce")
    assert not plan.optimal
    assert plan.algbw == Fraction(35, 8)
    assert plan.optimum >= 7


def test_same_network_same_trees() -> None:
    one, other = (all_reduce(reference("repo_mi250_2x8")) for _ in range(2))
    assert one == other


def test_a_division_stays_within_every_link() -> None:
    topology = reference("asym_star4_balanced")
    families = [family(topology, ("broadcast",)), family(topology, ("reduce",))]
    divided = divide(topology.capacities, len(topology.nodes), families)
    assert divided is not None
    assert divided.rate == Fraction(7, 2)
    for link, bandwidth in topology.capacities.items():
        assert (
            sum(
                part.capacities.get(arc, 0)
                for part in divided.parts
                for arc in (link, link[::-1])
                if link in part.family.links(arc)
            )
            <= bandwidth
        )


def test_every_point_is_summed_where_it_is_sent_from() -> None:
    plan = solve(star([2, 3, 5, 7], [2, 3, 5, 7]), "all_reduce")
    assert summed_at(plan, "reduce") == summed_at(plan, "broadcast")
    verify(plan.to_document())


def summed_at(plan: Plan, operation: str) -> dict[Fraction, int]:
    """The root of each point of a grid that is finer than every tree's interval."""
    grid = {point for tree in plan.trees for point in (tree.start, tree.start + tree.share)} - {Fraction(1)}
    trees = [tree for tree in plan.trees if tree.operation == operation]
    return {point: next(t.root for t in trees if t.start <= point < t.start + t.share) for point in sorted(grid)}
