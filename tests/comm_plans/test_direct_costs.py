"""Exact breadth-first costs against reference values, against a linear program, and against flows."""

from __future__ import annotations

import json
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from comm_plans.direct_connect import breadth_first
from comm_plans.direct_connect.breadth_first import Links, breadth_first_cost, links_between, links_of
from comm_plans.direct_connect.expression import build, parse
from comm_plans.direct_connect.frontier import all_to_all_bound
from comm_plans.direct_connect.graphs import Graph, graph_of
from comm_plans.errors import Disconnected

REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "topology.json").read_text())
WORDS = {
    "C(512,{16,17})": "C(512,16,17)",
    "C(1024,{23,24})": "C(1024,23,24)",
    "Kautz(4,4)": "Kautz(4,4)",
    "Octahedron J(4,2)": "Johnson(4,2)",
    "K5,5-PM": "Crown(5)",
    "Petersen": "Kneser(5,2)",
    "Heawood": "PG(2)",
    "Heawood dist-3": "CoPG(2)",
    "L(Petersen) undirected": "Edges(Kneser(5,2))",
    "L(Heawood) undirected": "Edges(PG(2))",
    "PG(2,3) incidence": "PG(3)",
    "AG(2,4)-parallel class": "AG4()",
    "Odd O4": "Kneser(7,3)",
    "Tutte 8-cage GQ(2,2)": "GQ(2)",
    "GQ(2,2) flags = L(8-cage)": "Edges(GQ(2))",
    "Doubled odd D(4)": "DoubledOdd(4)",
    "GQ(3,3) incidence": "GQ(3)",
    "U4xU8 squared": "(U(4)xU(8))^2",
    "L2(DiC(8,{1,3})^2)": "L^2(DiC(8,1,3)^2)",
    "L(DiC8)^2 []": "L(DiC(8,1,3))^2",
    "L4(K5)": "L^4(K(5))",
    "L3(K4,4)": "L^3(K(4,4))",
    "L2(H(2,3))": "L^2(H(2,3))",
    "L2(Q4)": "L^2(Q(4))",
    "K4,4*2 (=K8,8)": "K(4,4)*2",
    "BiRing(4)*2": "B(4)*2",
    "Petersen*2": "Kneser(5,2)*2",
    "K3 x K5": "K(3)xK(5)",
    "Petersen x BiRing5": "Kneser(5,2)xB(5)",
    "Torus2x4x8": "Torus(2,4,8)",
    "Q8": "Q(8)",
}


def costs(graph: Graph) -> dict[str, Any]:
    """Under the names of the reference file."""
    along, against = breadth_first_cost(links_of(graph)), breadth_first_cost(links_of(graph.transposed()))
    return {
        "N": graph.nodes,
        "d": graph.degree,
        "T_L": along.steps,
        "T_B": along.bandwidth_time(graph.nodes, graph.degree),
        "step_U": list(along.loads),
        "T_L_transpose": against.steps,
        "T_B_transpose": against.bandwidth_time(graph.nodes, graph.degree),
    }


def expected(entry: dict[str, Any]) -> dict[str, Any]:
    exact = {key: Fraction(entry[key]) for key in ("T_B", "T_B_transpose")}
    whole = {key: entry[key] for key in ("N", "d", "T_L", "T_L_transpose")}
    return exact | whole | {"step_U": [Fraction(load) for load in entry["step_U"]]}


@pytest.mark.parametrize("entry", [e for e in REFERENCE if e.get("edges")], ids=lambda entry: entry["name"])
def test_every_reference_graph_from_its_arcs(entry: dict[str, Any]) -> None:
    graph = graph_of(entry["N"], np.array(entry["edges"], dtype=np.int64))
    assert costs(graph) == expected(entry)


@pytest.mark.parametrize(
    "entry",
    [e for e in REFERENCE if e["name"] in WORDS or e["constructor"] in ("genkautz", "debruijn")],
    ids=lambda entry: entry["name"],
)
def test_every_reference_graph_from_its_word(entry: dict[str, Any]) -> None:
    graph = build(parse(WORDS.get(entry["name"], entry["name"])))
    assert costs(graph) == expected(entry)
    assert all_to_all_bound(graph) == Fraction(entry["mean_distance"]) * (graph.nodes - 1) / graph.nodes


def test_representatives_stand_for_all_nodes() -> None:
    for word in ("Pi(4,14)", "Pi(3,16)", "L^2(DiC(8,1,3)*2)", "L(U(3)xU(4))*2", "Cay(Z5:Z4:2,0.1,1.3)", "L(K(3)^2)"):
        graph = build(parse(word))
        assert len(graph.representatives) < graph.nodes
        everybody = Graph(graph.nodes, graph.degree, graph.arcs, np.arange(graph.nodes))
        assert breadth_first_cost(links_of(graph)).loads == breadth_first_cost(links_of(everybody)).loads


def random_links(chance: random.Random, weighted: bool) -> Links:
    nodes = chance.randrange(4, 14)
    ring = [(node, (node + 1) % nodes) for node in range(nodes)]
    others = [(i, j) for i in range(nodes) for j in range(nodes) if i != j and chance.random() < 0.25]
    bandwidths = {pair: Fraction(chance.randrange(1, 6), 2) if weighted else Fraction(1) for pair in [*ring, *others]}
    return links_between(bandwidths, nodes)


def linear_program(able: np.ndarray, weights: np.ndarray) -> float:
    """The least load at which each shard is divided over the links that may bring it."""
    shards, links = able.shape
    cost = np.append(np.zeros(shards * links), 1.0)
    whole = np.array([np.append(np.repeat(np.arange(shards) == shard, links), 0) for shard in range(shards)])
    loads = np.array([np.append(np.tile(np.arange(links) == k, shards), -weights[k]) for k in range(links)])
    bounds = [(0, 1 if each else 0) for each in able.ravel()] + [(0, None)]
    answer = linprog(cost, loads, np.zeros(links), whole, np.ones(shards), bounds, method="highs")
    return float(answer.fun)


def test_the_closed_form_is_the_linear_programs_optimum() -> None:
    from comm_plans.direct_connect.kernels import all_distances
    from comm_plans.direct_connect.split_kernels import arrivals

    chance, compared = random.Random(5), 0
    while compared < 520:
        links = random_links(chance, weighted=compared % 2 == 1)
        everybody = np.arange(links.nodes)
        distances = all_distances(links.starts, links.sources)
        for receiver in range(0, links.nodes, 2):
            alone = Links(links.starts, links.sources, links.weights, np.array([receiver]))
            loads = breadth_first_cost(alone).loads
            weights = links.weights[links.starts[receiver] : links.starts[receiver + 1]]
            for step, load in enumerate(loads, 1):
                arguments = links.starts, links.sources, receiver, everybody, distances, step
                _, group, able, _ = arrivals(*arguments)
                assert linear_program(able[group], weights) == pytest.approx(float(load), abs=1e-9)
                compared += 1


def test_flows_give_the_same_loads_as_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(8)
    cases = [random_links(chance, weighted=True) for _ in range(40)] + [links_of(build(parse("Pi(4,36)")))]
    by_sets = [breadth_first_cost(links).loads for links in cases]
    monkeypatch.setattr(breadth_first, "MOST_LINKS", 0)
    assert [breadth_first_cost(links).loads for links in cases] == by_sets


def test_parallel_arcs_are_one_link_of_their_number_as_weight() -> None:
    arcs = np.array([(0, 1), (0, 1), (1, 2), (1, 0), (2, 0), (2, 0)], dtype=np.int64)
    links = links_of(graph_of(3, arcs))
    assert links.weights.tolist() == [1, 2, 2, 1]
    assert breadth_first_cost(links).loads == (1, 1)


def test_a_graph_that_falls_apart_is_named() -> None:
    arcs = np.array([(0, 1), (1, 0), (2, 3), (3, 2)], dtype=np.int64)
    with pytest.raises(Disconnected, match="falls apart"):
        breadth_first_cost(links_of(graph_of(4, arcs)))
