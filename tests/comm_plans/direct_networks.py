"""Direct networks with known answers: those of the reference file and the families that the literature names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from scipy.optimize import linprog

from comm_plans.topology import Link, Switch, Topology

REFERENCE: dict[str, Any] = json.loads((Path(__file__).parents[1] / "data/direct_all_to_all.json").read_text())

Arcs = Mapping[tuple[int, int], int | Fraction]


def network(name: str, nodes: int, arcs: Arcs) -> Topology:
    """Ranks g0 … joined by arcs of so many GB/s."""
    links = tuple(Link(f"g{tail}", f"g{head}", Fraction(bandwidth)) for (tail, head), bandwidth in arcs.items())
    return Topology(name, tuple(f"g{node}" for node in range(nodes)), (), links)


def reference(name: str) -> Topology:
    """A network of the reference file."""
    entry = REFERENCE["topologies"][name]
    return network(name, entry["n"], {(tail, head): Fraction(str(each)) for tail, head, each in entry["edges"]})


def gen_kautz(nodes: int, degree: int) -> Topology:
    """Imase and Itoh: x → −d·x − a for a = 1 … d; loops dropped, parallel arcs added up."""
    return _arithmetic(f"genkautz({nodes},{degree})", nodes, [(-degree, -a) for a in range(1, degree + 1)])


def de_bruijn(degree: int, length: int) -> Topology:
    """x → d·x + a modulo d^k."""
    return _arithmetic(f"debruijn({degree},{length})", degree**length, [(degree, a) for a in range(degree)])


def _arithmetic(name: str, nodes: int, rules: list[tuple[int, int]]) -> Topology:
    arcs: dict[tuple[int, int], int] = {}
    for node in range(nodes):
        for factor, shift in rules:
            ends = node, (factor * node + shift) % nodes
            if ends[0] != ends[1]:
                arcs[ends] = arcs.get(ends, 0) + 1
    return network(name, nodes, arcs)


def cube(dimensions: int) -> dict[tuple[int, int], int]:
    """Arcs of a hypercube."""
    return {(node, node ^ 1 << bit): 1 for node in range(2**dimensions) for bit in range(dimensions)}


def twisted_cube() -> Topology:
    """The 3-cube with the edges 4-6 and 5-7 replaced by 4-7 and 5-6."""
    arcs = cube(3)
    for old, new in (((4, 6), (4, 7)), ((5, 7), (5, 6))):
        arcs.pop(old), arcs.pop(old[::-1])
        arcs[new], arcs[new[::-1]] = 1, 1
    return network("twistedcube8", 8, arcs)


def uneven_cube() -> Topology:
    """The 3-cube with bandwidths 1 + (3·min + 5·max) mod 4."""
    return network("hypercube8_hetero", 8, {ends: 1 + (3 * min(ends) + 5 * max(ends)) % 4 for ends in cube(3)})


# Random regular graphs, an edge two hexadecimal digits.
REGULAR = {
    "rr3_n12": "01 04 06 16 19 23 27 28 35 39 45 46 5b 78 7a 8a 9b ab",
    "rr4_n16": "03 06 08 0d 14 15 17 1d 24 26 28 2d 38 3c 3f 49 4b 57 5a 5e 6d 6f 7a 7f 8e 9b 9c 9f ab ac be ce",
}


def regular(name: str) -> Topology:
    """A random regular graph whose optimum is known."""
    edges = [(int(edge[0], 16), int(edge[1], 16)) for edge in REGULAR[name].split()]
    arcs = {ends: 1 for edge in edges for ends in (edge, edge[::-1])}
    return network(name, 1 + max(map(max, arcs)), arcs)


def without(topology: Topology, *ends: tuple[int, int]) -> Topology:
    """The network after the links between these nodes failed."""
    names = topology.nodes
    gone = {(names[tail], names[head]) for tail, head in ends}
    links = tuple(link for link in topology.links if (link.source, link.target) not in gone)
    return Topology(f"{topology.name} without {len(ends)}", topology.ranks, topology.switches, links)


def random_network(seed: int, most: int = 8) -> Topology:
    """A few ranks on a ring in random order, and random links with random bandwidths across it."""
    chance = Random(seed)
    nodes = chance.randint(2, most)
    order = chance.sample(range(nodes), nodes)
    arcs = {ends: chance.choice([1, 2, 3]) for ends in pairwise([*order, order[0]])}
    for _ in range(chance.randint(0, 2 * nodes)):
        tail, head = chance.sample(range(nodes), 2)
        arcs[tail, head] = chance.choice([1, Fraction(1, 2), 3])
    return network(f"random {seed}", nodes, arcs)


def rough_network(seed: int) -> Topology:
    """Ranks and switches with one-way and two-way links of any speed, connected or not."""
    chance = Random(seed)
    ranks = [f"g{rank}" for rank in range(chance.randint(2, 7))]
    switches = [f"s{switch}" for switch in range(chance.randint(0, 3))]
    links = []
    for _ in range(chance.randint(len(ranks), 5 * len(ranks))):
        one, other = chance.sample(ranks + switches, 2)
        bandwidth = Fraction(chance.randint(1, 997), chance.choice([1, 7, 10])) * chance.choice([1, 10])
        links.append(Link(one, other, bandwidth))
        if chance.random() < 0.7:
            links.append(Link(other, one, bandwidth))
    return Topology(f"rough {seed}", tuple(ranks), tuple(map(Switch, switches)), tuple(links))


def pairwise_rate(topology: Topology, demand: np.ndarray | None = None) -> float:
    """GB/s of the largest pair by the plain program with a flow for each pair, as slow as it is simple."""
    ranks, nodes = len(topology.ranks), len(topology.nodes)
    links, bandwidth = list(topology.capacities), [float(each) for each in topology.capacities.values()]
    demand = np.ones((ranks, ranks)) if demand is None else demand / demand.max()
    pairs = [(s, t) for s in range(ranks) for t in range(ranks) if s != t and demand[s, t]]
    columns = 1 + len(pairs) * len(links)
    balance = np.zeros((len(pairs) * nodes, columns))
    load = np.zeros((len(links), columns))
    for number, (source, target) in enumerate(pairs):
        for place, (tail, head) in enumerate(links):
            column = 1 + number * len(links) + place
            balance[number * nodes + tail, column] -= 1
            balance[number * nodes + head, column] += 1
            load[place, column] = 1
        balance[number * nodes + target, 0] = -demand[source, target]
        balance[number * nodes + source, 0] = demand[source, target]
    cost = np.zeros(columns)
    cost[0] = -1
    return -linprog(cost, load, bandwidth, balance, np.zeros(len(balance)), method="highs").fun
