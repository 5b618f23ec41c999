"""A topology's hosts as servers: bandwidths against those that the fabrics and files are made of."""

from pathlib import Path

import pytest

from comm_plans.all_to_all.cluster import Cluster
from comm_plans.all_to_all.hosts import cluster_of
from comm_plans.errors import ClusterError
from comm_plans.sources import topology_from
from comm_plans.topology import Topology

FILES = Path(__file__).parents[3] / "conf" / "topologies"


def links_of(cluster: Cluster) -> tuple[float, float]:
    return cluster.intra_bandwidth, cluster.nic_bandwidth


def test_a_box_of_gpus_with_a_card_each() -> None:
    cluster = cluster_of(topology_from("dgx_a100:boxes=2"))
    assert cluster.sizes == (8, 8)
    assert links_of(cluster) == (300, 25)


def test_a_card_for_each_rank_of_the_lab() -> None:
    cluster = cluster_of(topology_from(str(FILES / "rail_boxes.yaml")))
    assert cluster.sizes == (4, 4)
    assert links_of(cluster) == (0.025, 0.003125)


def test_ranks_share_one_uplink() -> None:
    cluster = cluster_of(topology_from(str(FILES / "two_boxes.yaml")))
    assert links_of(cluster) == (0.02265625, 0.00234375)  # of 0.025 a rank, a quarter of 0.009375


def topology(hosts: dict[str, tuple[str, ...]], up: float = 2, down: float = 1) -> Topology:
    ranks = ["a", "b", "c"]
    document = {
        "name": "small",
        "ranks": ranks,
        "switches": ["s"],
        "hosts": {host: list(members) for host, members in hosts.items()},
        "links": [[rank, "s", up] for rank in ranks] + [["s", rank, down] for rank in ranks],
    }
    return Topology.from_document(document)


def test_the_slower_way_counts_and_one_rank_a_host_is_enough() -> None:
    assert links_of(cluster_of(topology({"x": ("a",), "y": ("b",), "z": ("c",)}))) == (1, 1)
    assert links_of(cluster_of(topology({"x": ("a", "b", "c")}))) == (1, 1)


@pytest.mark.parametrize(
    ("hosts", "sentence"),
    [
        ({}, "has not all its ranks on hosts"),
        ({"x": ("a",), "y": ("b",)}, "has not all its ranks on hosts"),
        ({"x": ("a", "c"), "y": ("b",)}, "has not all its ranks on hosts, in order"),
        ({"x": ("a", "b"), "y": ("c",)}, None),
    ],
)
def test_hosts_that_do_not_hold_the_ranks_in_order(hosts: dict[str, tuple[str, ...]], sentence: str | None) -> None:
    if sentence is None:
        assert cluster_of(topology(hosts, up=3, down=3)).sizes == (2, 1)
    else:
        with pytest.raises(ClusterError, match=sentence):
            cluster_of(topology(hosts))
