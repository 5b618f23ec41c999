"""Routes: what the replay refuses, how few paths there are, whole chunks, layers without deadlock, tables."""

from __future__ import annotations

import csv
import json
from collections import Counter, defaultdict
from dataclasses import replace
from fractions import Fraction
from graphlib import TopologicalSorter
from io import StringIO
from itertools import pairwise

import numpy as np
import pytest
from direct_networks import REFERENCE, gen_kautz, random_network, reference

from comm_plans.all_to_all.direct import direct_all_to_all
from comm_plans.all_to_all.direct.rounding import in_chunks
from comm_plans.all_to_all.direct.route_check import replayed
from comm_plans.all_to_all.direct.route_tables import as_csv, as_json, route_table
from comm_plans.all_to_all.direct.routes import Routes
from comm_plans.all_to_all.direct.virtual_layers import check_layers, virtual_layers
from comm_plans.errors import PlanError
from comm_plans.fabrics import fabric
from comm_plans.topology import Topology

EXTRACTED = REFERENCE["path_extraction"]


def rounded(name: str, chunks: int) -> tuple[float, float]:
    """How much longer whole chunks take on a reference network, here and by the reference."""
    result = direct_all_to_all(reference(name))
    bandwidth = np.array([float(each) for each in result.topology.capacities.values()])
    routes = in_chunks(result.routes, result.demand, bandwidth / float(result.pair_rate), chunks)
    longer = replayed(result.topology, result.demand, [routes]) * result.pair_rate
    return float(longer), EXTRACTED[name]["round_ratio"][str(chunks)]


@pytest.mark.parametrize("name", EXTRACTED)
def test_few_short_paths(name: str) -> None:
    routes = direct_all_to_all(reference(name)).routes
    assert max(len(places) for places in routes.groups()) <= 4
    assert len(routes) <= EXTRACTED[name]["paths"] * 1.25
    assert routes.hops.max() <= EXTRACTED[name]["max_hops"] + 1


@pytest.mark.parametrize("name", EXTRACTED)
def test_whole_chunks_cost_little(name: str) -> None:
    for chunks, most in ((1, 1.2001), (8, 1.016), (16, 1.0081), (32, 1.005), (64, 1.0021)):
        longer, published = rounded(name, chunks)
        assert 1 <= longer <= max(most, published + 1e-6)


@pytest.mark.parametrize("name", EXTRACTED)
def test_layers_have_no_cycle_of_links_that_wait(name: str) -> None:
    result = direct_all_to_all(reference(name))
    layers = virtual_layers(result.topology, result.routes)
    assert layers.min() == 0
    assert layers.max() + 1 <= max(4, EXTRACTED[name]["layers_firstfit"])
    for layer in range(layers.max() + 1):
        waits: defaultdict[int, set[int]] = defaultdict(set)
        for place in np.flatnonzero(layers == layer):
            for held, wanted in pairwise(result.routes.arc[slice(*result.routes.begin[place : place + 2])].tolist()):
                waits[held].add(wanted)
        list(TopologicalSorter(waits).static_order())  # raises for a cycle
    check_layers(result.topology, result.routes, layers)


def test_layers_that_could_block_are_refused() -> None:
    result = direct_all_to_all(fabric("ring:ranks=5"))
    with pytest.raises(PlanError, match="block each other"):
        check_layers(result.topology, result.routes, np.zeros(len(result.routes), dtype=np.int64))


@pytest.fixture(scope="module")
def sound() -> tuple[Topology, np.ndarray, Routes]:
    result = direct_all_to_all(gen_kautz(8, 4))
    return result.topology, result.demand, result.routes


def broken(routes: Routes, how: str) -> Routes:
    arc, pair, share = routes.arc.copy(), routes.pair.copy(), routes.share.copy()
    if how == "jumps":
        arc[1] = (arc[1] + 9) % arc.max()
    elif how == "other receiver":
        pair[0, 1] = (pair[0, 1] + 1) % 8
    elif how == "too much":
        share[0] += 1
    elif how == "too little":
        share[:] = 1
    elif how == "nothing":
        share[0] = 0
    return replace(routes, arc=arc, pair=pair, share=share)


@pytest.mark.parametrize("how", ["jumps", "other receiver", "too much", "too little", "nothing"])
def test_broken_routes_are_refused(sound: tuple[Topology, np.ndarray, Routes], how: str) -> None:
    topology, demand, routes = sound
    replayed(topology, demand, [routes])
    with pytest.raises(PlanError):
        replayed(topology, demand, [broken(routes, how)])


def test_missing_and_doubled_routes_are_refused(sound: tuple[Topology, np.ndarray, Routes]) -> None:
    topology, demand, routes = sound
    for blocks in ([], [routes, routes]):
        with pytest.raises(PlanError, match="do not carry exactly"):
            replayed(topology, demand, blocks)


def test_a_path_that_comes_back_is_refused() -> None:
    topology = fabric("path:ranks=3")
    there = list(topology.capacities)
    walk = [there.index(ends) for ends in ((0, 1), (1, 2), (2, 1), (1, 2))]
    routes = Routes(np.array([[0, 2]]), np.array([1]), 1, np.array([0, 4]), np.array(walk))
    with pytest.raises(PlanError, match="comes back"):
        replayed(topology, np.array([[0, 0, 1], [0, 0, 0], [0, 0, 0]]), [routes])


@pytest.mark.parametrize("seed", range(10))
def test_tables_can_be_replayed_by_themselves(seed: int) -> None:
    result = direct_all_to_all(random_network(seed, most=6))
    table = json.loads(as_json(route_table(result)))
    topology = Topology.from_document(table["topology"])
    load: Counter[tuple[str, str]] = Counter()
    sent: Counter[tuple[str, str]] = Counter()
    for row in table["routes"]:
        assert (row["path"][0], row["path"][-1]) == (row["from"], row["to"])
        sent[row["from"], row["to"]] += row["chunks"]
        load.update(dict.fromkeys(pairwise(row["path"]), row["chunks"]))
    assert set(sent.values()) == {table["chunks"]}
    assert len(sent) == len(topology.ranks) * (len(topology.ranks) - 1)
    slowest = max(Fraction(load[link.source, link.target]) / link.bandwidth for link in topology.links)
    assert table["chunks"] / slowest == Fraction(table["pair_rate"])
    rows = list(csv.DictReader(StringIO(as_csv(table))))
    assert [row["path"].split(" > ") for row in rows] == [row["path"] for row in table["routes"]]


def test_few_exact_chunks_keep_the_optimum() -> None:
    assert route_table(direct_all_to_all(gen_kautz(16, 4)))["pair_rate"] == "7/53"
