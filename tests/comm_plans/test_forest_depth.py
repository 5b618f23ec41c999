"""Trees stay shallow at the full optimum: depth is free, and it is the latency of small messages."""

import pytest
from forest_networks import REFERENCE, reference

from comm_plans.fabrics import fabric
from comm_plans.solve import solve
from comm_plans.topology import Topology

BOXES_AND_RAILS = [
    *(f"dgx_a100:boxes={boxes}" for boxes in (1, 2, 3, 4, 5, 8)),
    *(f"dgx_h100:boxes={boxes}" for boxes in (1, 2, 3, 4, 8)),
    *(f"dgx1_v100:boxes={boxes}" for boxes in (1, 2, 4)),
]
ELSEWHERE = [
    "torus:shape=4x4",
    "torus:shape=2x3x4",
    "torus:shape=5x7",
    "hypercube:dimensions=4",
    "ring:ranks=16",
    "ring:ranks=7,directions=1",
    "path:ranks=6",
    "full_mesh:ranks=8",
    "star:ranks=16",
    "nvl:ranks=36",
    "fat_tree",
    "fat_tree:leaves=4,ranks=4,spines=2,oversubscription=2",
    "dragonfly",
    "mi250",
]
# Both boxes' links are needed to the last unit there, and a rank reaches every other through one switch.
DEEPER = {"repo_mi250_2x8"}


def eccentricity(topology: Topology) -> int:
    """Links between the two ranks that are farthest apart, switches counted as nodes."""
    behind: dict[int, list[int]] = {}
    for u, v in topology.capacities:
        behind.setdefault(u, []).append(v)
    farthest = 0
    for rank in range(len(topology.ranks)):
        distance, level = {rank: 0}, [rank]
        while level:
            level = list({v for u in level for v in behind[u] if v not in distance})
            distance |= dict.fromkeys(level, max(distance.values()) + 1)
        farthest = max(farthest, *(distance[other] for other in range(len(topology.ranks))))
    return farthest


@pytest.mark.parametrize("name", BOXES_AND_RAILS)
def test_boxes_and_rails_need_four_hops_at_most(name: str) -> None:
    plan = solve(fabric(name), "all_gather")
    assert plan.optimal
    assert plan.depth <= 4


@pytest.mark.parametrize("boxes", [3, 4, 8])
def test_boxes_are_shallow_without_symmetry_too(boxes: int) -> None:
    plan = solve(fabric(f"dgx_a100:boxes={boxes}"), "all_gather", symmetric=False)
    assert plan.optimal
    assert plan.depth <= 4


@pytest.mark.parametrize("name", ELSEWHERE)
def test_other_fabrics_need_twice_the_eccentricity_at_most(name: str) -> None:
    topology = fabric(name)
    plan = solve(topology, "all_gather")
    assert plan.optimal
    assert plan.depth <= 2 * eccentricity(topology)


@pytest.mark.parametrize("name", sorted(set(REFERENCE["topologies"]) - DEEPER))
@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter"])
def test_reference_networks_need_twice_the_eccentricity_at_most(name: str, collective: str) -> None:
    topology = reference(name)
    assert solve(topology, collective).depth <= 2 * eccentricity(topology)
