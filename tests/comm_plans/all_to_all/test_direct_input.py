"""What cannot be planned is refused in one sentence."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from direct_networks import network

from comm_plans.all_to_all.direct import direct_all_to_all
from comm_plans.all_to_all.direct.timed_flows import timed_all_to_all
from comm_plans.direct_connect.fabric import wired
from comm_plans.errors import Disconnected, PlansError, TopologyError
from comm_plans.fabrics import fabric
from comm_plans.topology import Topology

RING = fabric("ring:ranks=4")
TRAFFIC = np.ones((4, 4), dtype=np.int64)


@pytest.mark.parametrize("plan", [direct_all_to_all, timed_all_to_all])
def test_networks_that_cannot(plan) -> None:
    with pytest.raises(Disconnected, match="g2 cannot reach g0, g1 over the links of cut; add the missing links"):
        plan(network("cut", 3, {(0, 1): 1, (1, 0): 1, (1, 2): 1}))
    with pytest.raises(Disconnected):
        plan(Topology("none", ("a", "b")))
    with pytest.raises(TopologyError, match="one rank only"):
        plan(Topology("alone", ("a",)))
    with pytest.raises(TopologyError, match="bandwidth 0 GB/s lies outside"):
        plan(network("dead", 2, {(0, 1): 1, (1, 0): 0}))


@pytest.mark.parametrize(
    ("traffic", "words"),
    [
        (np.ones((3, 3), dtype=np.int64), "needs a row and a column for each of its 4 ranks"),
        (np.ones(4, dtype=np.int64), "needs a row and a column for each of its 4 ranks"),
        (-TRAFFIC, "whole numbers"),
        (TRAFFIC * 0.5, "whole numbers"),
        (np.full((4, 4), 2**63, dtype=np.uint64), "whole numbers"),
        (np.diag([5, 5, 5, 5]), "zero between all ranks"),
    ],
)
def test_traffic_that_makes_no_sense(traffic: np.ndarray, words: str) -> None:
    with pytest.raises(PlansError, match=words):
        direct_all_to_all(RING, traffic)


def test_only_pairs_that_send_must_be_joined() -> None:
    one_way = network("one way", 3, {(0, 1): 2, (1, 2): 1})
    traffic = np.array([[9, 4, 4], [0, 0, 0], [0, 0, 9]])
    result = direct_all_to_all(one_way, traffic)
    assert (result.pair_rate, result.seconds * 10**9) == (1, 4)
    with pytest.raises(Disconnected, match="g1 cannot reach g0"):
        direct_all_to_all(one_way, traffic.T)


def test_too_much_to_solve() -> None:
    traffic = np.ones((700, 700), dtype=np.int64)
    traffic[0, 1] = 2
    with pytest.raises(PlansError, match="977202 unknowns where 400000 can be solved; take a smaller one"):
        direct_all_to_all(wired("Pi(2,700)"), traffic)


def test_the_largest_numbers() -> None:
    result = direct_all_to_all(RING, np.full((4, 4), 2**61))
    assert result.exact
    assert result.seconds == Fraction(2**62, 10**9)
