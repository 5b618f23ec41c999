"""Which network the ranks stand on: named, told by the nodes, or refused in a sentence."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from comm_plans.topology import Topology
from orchestrator.cluster.nodes import Node
from orchestrator.errors import UserError
from orchestrator.network import Site, site

HEAD = Node("10.0.0.1", "alpha", {"CPU": 2.0})
OTHER = Node("10.0.0.2", "beta", {"CPU": 2.0})
TWO_HOSTS = """
name: pair
ranks: [a, b, c, d]
switches: [s]
hosts: {beta: [a, b], 10.0.0.1: [c, d]}
cables: [[a, s, 1], [b, s, 1], [c, s, 1], [d, s, 1]]
"""
NO_HOSTS = "{name: plain, ranks: [x, y], cables: [[x, y, 1]]}"


def found(word: object, *nodes: Node, workers: int = 4, speeds: list[Fraction | None] | None = None) -> Site:
    return site(str(word), "local", workers, 1, nodes, lambda: speeds or [None] * len(nodes))


def written(folder: Path, text: str) -> Path:
    path = folder / "cluster.yaml"
    path.write_text(text)
    return path


def test_ranks_stand_on_the_hosts_that_the_file_names_by_hostname_or_address(tmp_path: Path) -> None:
    where = found(written(tmp_path, TWO_HOSTS), HEAD, OTHER)
    assert where.topology.name == "pair"
    assert where.pins == ("node:10.0.0.2", "node:10.0.0.2", "node:10.0.0.1", "node:10.0.0.1")


def test_hosts_that_are_not_there_are_named_beside_the_nodes_that_are(tmp_path: Path) -> None:
    strangers = TWO_HOSTS.replace("beta", "gamma")
    with pytest.raises(UserError, match=r"the hosts gamma, 10\.0\.0\.1, and the cluster's nodes are alpha, beta"):
        found(written(tmp_path, strangers), HEAD, OTHER)


def test_a_file_without_hosts_serves_on_one_node_and_is_refused_on_two(tmp_path: Path) -> None:
    path = written(tmp_path, NO_HOSTS)
    assert found(path, HEAD, workers=2).pins == ()
    with pytest.raises(UserError, match="write under `hosts` which ranks stand on which node"):
        found(path, HEAD, OTHER, workers=2)


def test_a_rank_without_a_host_is_named(tmp_path: Path) -> None:
    partly = TWO_HOSTS.replace("beta: [a, b]", "beta: [a]")
    with pytest.raises(UserError, match="does not say on which host b stands"):
        found(written(tmp_path, partly), HEAD, OTHER)


def test_an_elastic_job_keeps_what_is_left_of_its_network(tmp_path: Path) -> None:
    three = TWO_HOSTS.replace("[a, b, c, d]", "[a, b, c, d, e]").replace("[c, d]}", "[c, d], gone: [e]}")
    path = written(tmp_path, three.replace("[d, s, 1]]", "[d, s, 1], [e, s, 1], [e, a, 1]]"))
    where = site(str(path), "local", 4, 1, (HEAD, OTHER), lambda: [None, None], elastic=True)
    assert where.topology == replace(Topology.load(written(tmp_path, TWO_HOSTS)), name="pair")
    assert where.pins == ("node:10.0.0.2", "node:10.0.0.2", "node:10.0.0.1", "node:10.0.0.1")


def test_hosts_of_a_fabric_are_the_nodes_in_order() -> None:
    assert found("dgx_a100:boxes=2", HEAD, OTHER, workers=16).pins == ("node:10.0.0.1",) * 8 + ("node:10.0.0.2",) * 8


def test_ranks_stand_where_a_resource_of_their_name_is(tmp_path: Path) -> None:
    nodes = [Node(f"10.0.0.{place}", "lab", {f"rank:{name}": 1.0}) for place, name in enumerate("yx", 3)]
    assert found(written(tmp_path, NO_HOSTS), HEAD, *nodes, workers=2).pins == ("rank:x", "rank:y")


def test_another_number_of_ranks_than_workers_is_refused() -> None:
    with pytest.raises(UserError, match=r"topology=ring:ranks=3 has 3 ranks and cluster\.workers=4; make them equal"):
        found("ring:ranks=3", HEAD)


def test_a_word_that_names_no_network_is_refused() -> None:
    with pytest.raises(UserError, match="topology=rinng: 'rinng' is neither a file nor a fabric"):
        found("rinng", HEAD)


def test_one_machine_has_no_network_to_find() -> None:
    with pytest.raises(UserError, match="all workers on one machine, where there is no network to plan for"):
        found("auto", HEAD, workers=2)


def test_nodes_tell_their_network_by_the_speeds_they_report() -> None:
    where = found("auto", HEAD, OTHER, workers=3, speeds=[Fraction(25, 8), None])
    assert where.pins == ("node:10.0.0.1", "node:10.0.0.1", "node:10.0.0.2")
    assert bandwidths(where.topology, "core") == {"10.0.0.1": Fraction(25, 8), "10.0.0.2": Fraction(5, 4)}
    assert where.remark is not None
    assert "10.0.0.2 report no speed, 1.25 GB/s was assumed" in where.remark


def bandwidths(topology: Topology, target: str) -> dict[str, Fraction]:
    return {link.source: link.bandwidth for link in topology.links if link.target == target}
