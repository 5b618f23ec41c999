"""Switches that copy and add: less on the links, shallower trees, and all_reduce beyond what forwarding can do."""

from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest
from forest_networks import REFERENCE, networks, reference, star
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from comm_plans.forest.multicast import out_tree, reversed_paths, use_able_switches
from comm_plans.plan import Tree
from comm_plans.solve import solve
from comm_plans.topology import Topology
from comm_plans.verifier import verify

IN_NETWORK = [
    name
    for name, entry in REFERENCE["topologies"].items()
    if "lp_algbw_in_network" in (entry.get("allreduce_lp") or {})
]


def crossings(trees: tuple[Tree, ...]) -> Fraction:
    """Shares carried, added up over all links."""
    return sum((tree.share * len(list(pairwise(path))) for tree in trees for path in tree.paths), Fraction(0))


def steiner_packing(topology: Topology) -> float:
    """Trees over all ranks and any switches that fit a mirrored network: a program over every tree there is."""
    cables = [link for link in topology.capacities if link[0] < link[1]]
    ranks, nodes = set(range(len(topology.ranks))), len(topology.nodes)
    trees = [
        chosen
        for size in range(len(ranks) - 1, nodes)
        for chosen in combinations(cables, size)
        if ranks <= {node for cable in chosen for node in cable} and _is_tree(chosen)
    ]
    uses = np.array([[cable in tree for tree in trees] for cable in cables], float)
    answer = linprog(-np.ones(len(trees)), uses, [float(topology.capacities[cable]) for cable in cables])
    return float(-answer.fun)


def _is_tree(cables: tuple[tuple[int, int], ...]) -> bool:
    touched = {node for cable in cables for node in cable}
    reached = {cables[0][0]}
    for _ in cables:
        reached |= {node for cable in cables if reached & set(cable) for node in cable}
    return reached == touched and len(cables) == len(touched) - 1


@pytest.mark.parametrize("name", IN_NETWORK)
def test_all_reduce_reaches_the_in_network_bound(name: str) -> None:
    bound = Fraction(REFERENCE["topologies"][name]["allreduce_lp"]["lp_algbw_in_network"]).limit_denominator(1000)
    plan = solve(reference(name, able=True), "all_reduce")
    assert (plan.algbw, plan.optimal) == (bound, True)


@pytest.mark.parametrize(
    ("name", "value"), [("repo_a100_1box", 300), ("asym_star4_balanced", 4), ("dgxh100_rail_2x8", 400)]
)
def test_all_reduce_beyond_the_reference(name: str, value: int) -> None:
    plan = solve(reference(name, able=True), "all_reduce")
    assert (plan.algbw, plan.optimal) == (value, True)


@settings(max_examples=30)
@given(networks(most_ranks=3, most_switches=2, mirrored=True, able=True))
def test_all_reduce_never_exceeds_and_mostly_equals_all_trees(topology: Topology) -> None:
    plan = solve(topology, "all_reduce")
    best = steiner_packing(topology)
    assert float(plan.algbw) <= best * (1 + 1e-9)
    assert float(plan.optimum) >= best * (1 - 1e-9)


def test_a_single_able_switch_adds_everything_at_once() -> None:
    plan = solve(star([4] * 8, [4] * 8, able=True), "all_reduce")
    assert plan.algbw == 4
    assert plan.depth == 1
    for tree in plan.trees:
        assert len(tree.paths) == 8 + 1 - 1


@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter", "broadcast", "reduce"])
@pytest.mark.parametrize("name", ["star8", "fat_tree_2x4_os2", "dgx_2x8", "dead_end_switch"])
def test_able_switches_save_links_and_depth_at_the_same_optimum(name: str, collective: str) -> None:
    root = 0 if collective in ("broadcast", "reduce") else None
    plain, able = (solve(reference(name, able=able), collective, root=root) for able in (False, True))
    assert (able.algbw, able.optimal) == (plain.algbw, True)
    assert crossings(able.trees) <= crossings(plain.trees)
    assert able.depth <= plain.depth


@settings(max_examples=60)
@given(networks(most_switches=3, able=True), st.sampled_from(["all_gather", "reduce_scatter"]))
def test_pruned_trees_stay_valid_and_enter_no_switch_twice(topology: Topology, collective: str) -> None:
    plan = solve(topology, collective)
    verify(plan.to_document())
    ranks = len(topology.ranks)
    for tree in plan.trees:
        paths = tree.paths if tree.operation == "broadcast" else reversed_paths(tree.paths)
        entered = [node for path in paths for node in path[1:] if node >= ranks]
        assert len(entered) == len(set(entered))


def test_second_copy_into_a_switch_is_dropped() -> None:
    paths = [(0, 9, 1), (1, 9, 2), (2, 3), (3, 9, 4)]
    assert out_tree(0, paths, ranks=9, able={9}) == ((0, 9), (9, 1), (9, 2), (2, 3), (9, 4))
    assert out_tree(0, paths, ranks=9, able=set()) == tuple(paths)


def test_switches_without_use_are_cut_off_and_those_with_one_child_passed() -> None:
    assert out_tree(0, [(0, 9), (9, 10), (0, 11), (11, 1)], ranks=9, able={9, 10, 11}) == ((0, 11, 1),)


def test_only_able_switches_become_vertices() -> None:
    topology = Topology.from_document(
        {
            "name": "half",
            "ranks": ["a", "b", "c"],
            "switches": [{"name": "s", "multicast": True, "reduces": False}],
            "cables": [["a", "s", 2], ["b", "s", 2], ["c", "s", 2]],
        }
    )
    down = Tree("broadcast", 0, Fraction(0), Fraction(1), ((0, 3, 1), (1, 3, 2)))
    up = Tree("reduce", 0, Fraction(0), Fraction(1), ((2, 3, 1), (1, 3, 0)))
    pruned = use_able_switches(topology, (down, up))
    assert pruned[0].paths == ((0, 3), (3, 1), (3, 2))
    assert pruned[1] == up


def test_a_switch_must_copy_and_add_to_speed_a_star_up() -> None:
    names = ["a", "b", "c", "d"]
    values = {}
    for copies, adds in ((False, False), (True, False), (False, True), (True, True)):
        switch = {"name": "s", "multicast": copies, "reduces": adds}
        document = {"name": "x", "ranks": names, "switches": [switch], "cables": [[name, "s", 6] for name in names]}
        values[copies, adds] = solve(Topology.from_document(document), "all_reduce").algbw
    assert values[False, False] == 4
    assert values[True, True] == 6
    assert values[True, False] == values[False, True] == 4  # the other half still fills the links of one direction
