"""all_gather and reduce_scatter of unequal shards reach the cut that weighs most."""

from fractions import Fraction

import pytest
from forest_networks import cut_bound, network, networks, reference, reversed_network
from hypothesis import given, settings
from hypothesis import strategies as st

from comm_plans.errors import Disconnected, PlansError
from comm_plans.forest.weighted import weights_of
from comm_plans.solve import solve
from comm_plans.topology import Topology
from comm_plans.verifier import verify


@settings(max_examples=60)
@given(networks(), st.data())
def test_unequal_shards_equal_brute_force_over_all_cuts(topology: Topology, data: st.DataObject) -> None:
    ranks = len(topology.ranks)
    weights = data.draw(st.lists(st.integers(0, 5), min_size=ranks, max_size=ranks).filter(any))
    shards = [Fraction(weight) for weight in weights]
    gather, scatter = solve(topology, "all_gather", shards=shards), solve(topology, "reduce_scatter", shards=shards)
    assert gather.algbw == cut_bound(topology, weights)
    assert scatter.algbw == cut_bound(reversed_network(topology), weights)
    for plan in (gather, scatter):
        assert verify(plan.to_document()).proved
        assert plan.shards == tuple(Fraction(weight, sum(weights)) for weight in weights)


@pytest.mark.parametrize("name", ["path4", "twobox2_3_2", "dgx1_v100_1box", "rail_2x3_9_2"])
def test_equal_shards_are_the_plain_collective(name: str) -> None:
    topology = reference(name)
    shards = [Fraction(1, 3)] * len(topology.ranks)
    assert solve(topology, "all_gather", shards=shards).algbw == solve(topology, "all_gather").algbw


def test_a_rank_without_data_roots_no_tree_but_receives_all() -> None:
    topology = reference("star8")
    plan = solve(topology, "all_gather", shards=[Fraction(0)] + [Fraction(1)] * 7)
    assert 0 not in {tree.root for tree in plan.trees}
    assert all(any(path[-1] == 0 for path in tree.paths) for tree in plan.trees)
    assert plan.algbw == 4  # every byte enters rank 0 over its one downlink


def test_a_rank_without_data_need_not_be_able_to_send() -> None:
    topology = network(3, 0, {(0, 1): 2, (1, 0): 2, (0, 2): 3})
    assert solve(topology, "all_gather", shards=[Fraction(1), Fraction(1), Fraction(0)]).algbw == 3
    with pytest.raises(Disconnected, match="g2 cannot reach"):
        solve(topology, "all_gather", shards=[Fraction(1)] * 3)


def test_one_rank_that_holds_everything_broadcasts() -> None:
    topology = reference("twobox2_3_2")
    shards = [Fraction(0), Fraction(7), Fraction(0), Fraction(0)]
    assert solve(topology, "all_gather", shards=shards).algbw == solve(topology, "broadcast", root=1).algbw


def test_weights_are_coprime_whole_numbers() -> None:
    assert weights_of([Fraction(1, 2), Fraction(1, 3), Fraction(0), Fraction(1, 6)]) == (3, 2, 0, 1)
    assert weights_of([Fraction(4), Fraction(6)]) == (2, 3)


@pytest.mark.parametrize(
    ("shards", "complaint"),
    [([1, 1], "2 shards for 4 ranks"), ([0, 0, 0, 0], "one must be positive"), ([2, -1, 1, 1], "none may be negative")],
)
def test_impossible_shards_are_refused(shards: list[int], complaint: str) -> None:
    with pytest.raises(PlansError, match=complaint):
        solve(reference("path4"), "all_gather", shards=[Fraction(shard) for shard in shards])


def test_an_all_reduce_has_no_shards() -> None:
    with pytest.raises(PlansError, match="no shards"):
        solve(reference("path4"), "all_reduce", shards=[Fraction(1)] * 4)
