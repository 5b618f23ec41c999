"""broadcast and reduce reach the smallest cut between the root and any rank."""

from fractions import Fraction

import pytest
from forest_networks import SMALL, cut_bound, networks, reference, reversed_network, star
from hypothesis import given, settings
from hypothesis import strategies as st

from comm_plans.errors import Disconnected, PlansError
from comm_plans.solve import solve
from comm_plans.topology import Topology
from comm_plans.verifier import verify


def root_weights(topology: Topology, root: int) -> list[int]:
    return [int(rank == root) for rank in range(len(topology.ranks))]


@settings(max_examples=60)
@given(networks(), st.data())
def test_broadcast_and_reduce_equal_brute_force_over_all_cuts(topology: Topology, data: st.DataObject) -> None:
    root = data.draw(st.integers(0, len(topology.ranks) - 1))
    down, up = solve(topology, "broadcast", root=root), solve(topology, "reduce", root=root)
    weights = root_weights(topology, root)
    assert down.algbw == cut_bound(topology, weights)
    assert up.algbw == cut_bound(reversed_network(topology), weights)
    for plan in (down, up):
        assert plan.optimal
        assert verify(plan.to_document()).proved


@pytest.mark.parametrize("name", [name for name in SMALL if len(reference(name).nodes) <= 11])
def test_reference_networks_broadcast_at_their_smallest_cut(name: str) -> None:
    topology = reference(name)
    root = len(topology.ranks) - 1
    plan = solve(topology, "broadcast", root=root)
    assert plan.algbw == cut_bound(topology, root_weights(topology, root))
    assert {tree.root for tree in plan.trees} == {root}
    assert plan.root == root


def test_every_root_of_unequal_uplinks_broadcasts_at_its_own_rate() -> None:
    topology = star([2, 3, 7], [4, 4, 4])
    assert [solve(topology, "broadcast", root=root).algbw for root in range(3)] == [2, 3, 4]


def test_exactly_as_many_trees_as_asked_for() -> None:
    topology = reference("hypercube3")
    for trees in (1, 2, 3, 5):
        plan = solve(topology, "broadcast", root=0, trees_per_rank=trees)
        shares = {tree.share for tree in plan.trees}
        assert plan.trees_per_rank == trees
        assert all((share * trees).denominator == 1 for share in shares)
        assert plan.optimum == 3
        assert plan.algbw == (Fraction(trees) if trees < 3 else 3 if trees == 3 else Fraction(5, 2))


def test_a_root_is_needed_and_must_exist() -> None:
    topology = reference("path4")
    for root in (None, -1, 4):
        with pytest.raises(PlansError, match="root from 0 to 3"):
            solve(topology, "broadcast", root=root)
    with pytest.raises(PlansError, match="has no root"):
        solve(topology, "all_gather", root=0)


def test_a_one_way_network_broadcasts_only_downstream() -> None:
    topology = Topology.from_document(
        {"name": "oneway", "ranks": ["a", "b", "c"], "links": [["a", "b", 2], ["b", "c", 3]]}
    )
    assert solve(topology, "broadcast", root=0).algbw == 2
    assert solve(topology, "reduce", root=2).algbw == 2
    with pytest.raises(Disconnected, match="a"):
        solve(topology, "broadcast", root=1)
