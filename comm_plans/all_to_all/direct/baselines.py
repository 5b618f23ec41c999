"""What common ways of routing an all-to-all reach, to compare the optimum with.

Each returns routes of all pairs, which `route_check.replayed` rates like any others, but for the equal split over all
shortest paths, whose paths can be too many to list.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import chain, pairwise, product

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from comm_plans.all_to_all.direct.demands import demand_of
from comm_plans.all_to_all.direct.flow_problem import Indices, links_of, steady_problem, translations_of
from comm_plans.all_to_all.direct.linear_program import solve_flows
from comm_plans.all_to_all.direct.paths import hops_between, on_shortest
from comm_plans.all_to_all.direct.route_check import replayed
from comm_plans.all_to_all.direct.routes import Routes, routes_of_flow
from comm_plans.errors import PlansError
from comm_plans.topology import Topology

HOP = 1e-6  # weight of a hop where loads are equal


def rate_of(topology: Topology, routes: Routes) -> Fraction:
    """GB/s a pair that routes of all pairs reach when all send the same; exact."""
    return 1 / replayed(topology, demand_of(topology, None), [routes])


def shortest_path_flow(topology: Topology) -> Routes:
    """The best that routes over shortest paths only can do."""
    demand = demand_of(topology, None)
    problem = steady_problem(topology, demand, translations_of(topology, alike=False), on_shortest(topology))
    return routes_of_flow(problem, solve_flows(problem).flow)


def equal_split_rate(topology: Topology) -> float:
    """GB/s a pair when each pair splits its data equally over all of its shortest paths."""
    ranks, links = len(topology.ranks), links_of(topology)
    demand_of(topology, None)
    hops, nearer = hops_between(topology), on_shortest(topology)
    load = np.zeros(len(links))
    for rank in range(ranks):
        load += _equal_split(hops[rank], links[nearer[rank]], ranks, np.flatnonzero(nearer[rank]), len(links))
    bandwidth = np.array([float(each) for each in topology.capacities.values()])
    return float(1 / (load / bandwidth).max())


def _equal_split(
    hops: NDArray[np.float64], links: Indices, ranks: int, places: Indices, size: int
) -> NDArray[np.float64]:
    """What one rank's data puts on each link: paths counted outwards, data gathered inwards."""
    order = np.argsort(hops[links[:, 0]], kind="stable")
    ways = (hops == 0).astype(float)
    for tail, head in links[order]:
        ways[head] += ways[tail]
    through = np.zeros(len(hops))
    through[:ranks] = hops[:ranks] > 0
    load = np.zeros(size)
    for place in order[::-1]:
        tail, head = links[place]
        load[places[place]] = through[head] * ways[tail] / ways[head]
        through[tail] += load[places[place]]
    return load


def least_loaded_paths(topology: Topology) -> Routes:
    """Single-source shortest paths as subnet managers route: pair after pair takes the path of least load so far."""
    demand, links = demand_of(topology, None), links_of(topology)
    bandwidth = np.array([float(each) for each in topology.capacities.values()])
    position = {tuple(ends): place for place, ends in enumerate(links.tolist())}
    weight = np.full(len(links), HOP)
    found = []
    for sender, receiver in np.argwhere(demand).tolist():
        graph = csr_matrix((weight, tuple(links.T)), shape=(len(topology.nodes),) * 2)
        _, before = dijkstra(graph, indices=sender, return_predecessors=True)
        path = [receiver]
        while path[-1] != sender:
            path.append(int(before[path[-1]]))
        arcs = [position[ends] for ends in zip(path[:0:-1], path[-2::-1], strict=True)]
        weight[arcs] += 1 / bandwidth[arcs]
        found.append(arcs)
    return _single_paths(np.argwhere(demand), found)


def dimension_order_paths(topology: Topology, shape: Sequence[int]) -> Routes:
    """On a torus numbered row by row: one dimension after the other, the shorter way round, forwards on a tie.

    Raises PlansError where the network is no torus of that shape.
    """
    places = list(product(*(range(size) for size in shape)))
    number = {place: rank for rank, place in enumerate(places)}
    position = {ends: place for place, ends in enumerate(topology.capacities)}
    pairs = [(one, other) for one in places for other in places if one != other]
    walks = [[number[step] for step in _walk(*pair, shape)] for pair in pairs]
    try:
        arcs = [[position[ends] for ends in pairwise(walk)] for walk in walks]
    except KeyError as error:
        raise PlansError(f"{topology.name} is no torus of shape {'x'.join(map(str, shape))}; give its own") from error
    return _single_paths(np.array([(number[one], number[other]) for one, other in pairs]), arcs)


def _walk(start: tuple[int, ...], end: tuple[int, ...], shape: Sequence[int]) -> list[tuple[int, ...]]:
    walk = [start]
    for axis, size in enumerate(shape):
        ahead = (end[axis] - start[axis]) % size
        way = 1 if ahead <= size - ahead else -1
        for _ in range(min(ahead, size - ahead)):
            here = walk[-1]
            walk.append((*here[:axis], (here[axis] + way) % size, *here[axis + 1 :]))
    return walk


def _single_paths(pairs: Indices, arcs: list[list[int]]) -> Routes:
    begin = np.cumsum([0, *map(len, arcs)])
    joined = np.fromiter(chain.from_iterable(arcs), dtype=np.int64)
    return Routes(pairs, np.ones(len(pairs), dtype=np.int64), 1, begin, joined)
