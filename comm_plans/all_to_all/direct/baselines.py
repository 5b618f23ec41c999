"""What common ways of routing an all-to-all reach, to compare the optimum with.

Each returns routes of all pairs, which `route_check.replayed` rates like any others, but for the equal split over all
shortest paths, whose paths can be too many to list. traffic: N × N bytes from rank to rank; by default all pairs send
the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from comm_plans.all_to_all.direct.demands import demand_of, is_uniform
from comm_plans.all_to_all.direct.dimension_order import dimension_order_paths, torus_shape
from comm_plans.all_to_all.direct.flow_problem import (
    Floats,
    Indices,
    bandwidths_of,
    links_of,
    steady_problem,
    translations_of,
)
from comm_plans.all_to_all.direct.linear_program import solve_flows
from comm_plans.all_to_all.direct.paths import hops_between, on_shortest
from comm_plans.all_to_all.direct.route_check import replayed
from comm_plans.all_to_all.direct.routes import Routes, everywhere, joined, routes_of_flow, single_paths
from comm_plans.topology import Topology

HOP = 1e-6  # weight of a hop where loads are equal


def rates_of_others(topology: Topology, traffic: Indices | None = None) -> Iterator[tuple[str, float]]:
    """Each way of routing that fits the network, in words, and the rate it reaches as `rate_of` has it."""
    yield "shortest paths only", float(rate_of(topology, shortest_path_flow(topology, traffic), traffic))
    yield "all shortest paths alike", equal_split_rate(topology, traffic)
    yield "least-loaded paths", float(rate_of(topology, least_loaded_paths(topology, traffic), traffic))
    shape = torus_shape(topology)
    if shape is not None:
        paths = dimension_order_paths(topology, shape, traffic)
        yield "dimension order", float(rate_of(topology, paths, traffic))


def rate_of(topology: Topology, routes: Routes, traffic: Indices | None = None) -> Fraction:
    """GB/s of the largest pair that routes of all pairs reach when all send at once; exact."""
    demand = demand_of(topology, traffic)
    return int(demand.max()) / replayed(topology, demand, [routes])


def shortest_path_flow(topology: Topology, traffic: Indices | None = None) -> Routes:
    """The best that routes over shortest paths only can do."""
    demand = demand_of(topology, traffic)
    translations = translations_of(topology, alike=is_uniform(demand))
    problem = steady_problem(topology, demand, translations, on_shortest(topology))
    found = routes_of_flow(problem, solve_flows(problem).flow)
    return joined(list(everywhere(links_of(topology), found, translations.elements)))


def equal_split_rate(topology: Topology, traffic: Indices | None = None) -> float:
    """GB/s of the largest pair when each pair splits its data equally over all of its shortest paths."""
    demand, links = demand_of(topology, traffic), links_of(topology)
    hops, nearer = hops_between(topology), on_shortest(topology)
    load = np.zeros(len(links))
    for rank, units in enumerate(demand.astype(float)):
        load[nearer[rank]] += _equal_split(hops[rank], links[nearer[rank]], units)
    return float(demand.max() / (load / bandwidths_of(topology)).max())


def _equal_split(hops: Floats, links: Indices, units: Floats) -> Floats:
    """What one rank's data puts on each link: paths counted outwards, data gathered inwards."""
    order = np.argsort(hops[links[:, 0]], kind="stable")
    ways = (hops == 0).astype(float)
    for tail, head in links[order]:
        ways[head] += ways[tail]
    through = np.zeros(len(hops))
    through[: len(units)] = units
    load = np.zeros(len(links))
    for place in order[::-1]:
        tail, head = links[place]
        load[place] = through[head] * ways[tail] / ways[head]
        through[tail] += load[place]
    return load


def least_loaded_paths(topology: Topology, traffic: Indices | None = None) -> Routes:
    """Single-source shortest paths as subnet managers route: pair after pair takes the path of least load so far."""
    demand, links = demand_of(topology, traffic), links_of(topology)
    added = 1 / bandwidths_of(topology)
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
        weight[arcs] += added[arcs] * (demand[sender, receiver] / demand.max())
        found.append(arcs)
    return single_paths(np.argwhere(demand), found)
