"""The frontier as a person chooses from it: exact costs of each collective, and which wiring is best for which size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from comm_plans.direct_connect.breadth_first import breadth_first_cost, links_of
from comm_plans.direct_connect.candidates import Candidate
from comm_plans.direct_connect.expression import Wiring, build
from comm_plans.direct_connect.fabric import wired
from comm_plans.direct_connect.graphs import Graph
from comm_plans.errors import TopologyError
from comm_plans.topology import MOST_NODES

MOST_DEGREE = 64


@dataclass(frozen=True)
class Choice:
    """One wiring of the frontier. T = steps·α + time·M/B for M bytes, B being the bandwidth of all ports of a node.

    M is the result of an all_gather, the input of a reduce_scatter, the vector of an all_reduce.

    `all_to_all_bound`: no all_to_all of M bytes a node takes less than this times M/B; None where no graph is known.
    """

    wiring: Wiring
    method: str
    nodes: int
    degree: int
    steps: int
    bandwidth_time: Fraction
    scatter_steps: int
    scatter_time: Fraction
    all_to_all_bound: Fraction | None

    def seconds(self, alpha: float, size_bytes: int, bandwidth: float) -> float:
        """Seconds of an all_gather; `bandwidth` in bytes a second is that of a node."""
        return self.steps * alpha + float(self.bandwidth_time) * size_bytes / bandwidth

    def all_reduce_seconds(self, alpha: float, size_bytes: int, bandwidth: float) -> float:
        """Seconds of an all_reduce: reduce_scatter, then all_gather."""
        time = float(self.bandwidth_time + self.scatter_time)
        return (self.steps + self.scatter_steps) * alpha + time * size_bytes / bandwidth

    def document(self) -> dict[str, object]:
        """What `wire --json` prints of it."""
        return {
            "topology": str(self.wiring),
            "method": self.method,
            "nodes": self.nodes,
            "degree": self.degree,
            "steps": self.steps,
            "bandwidth_time": str(self.bandwidth_time),
            "reduce_scatter_steps": self.scatter_steps,
            "reduce_scatter_bandwidth_time": str(self.scatter_time),
            "all_to_all_bound": None if self.all_to_all_bound is None else str(self.all_to_all_bound),
        }


def surveyed(wiring: Wiring, method: str) -> Choice:
    """Work out the costs of a wiring whose graph is known, from its graph alone."""
    graph = build(wiring)
    if method == "expansion":
        (steps, time), (scatter_steps, scatter_time) = (_expansion_cost(wiring, way) for way in (False, True))
    else:
        (steps, time), (scatter_steps, scatter_time) = map(_cost, (graph, graph.transposed()))
    bound = all_to_all_bound(graph)
    return Choice(wiring, method, graph.nodes, graph.degree, steps, time, scatter_steps, scatter_time, bound)


def by_formula(candidate: Candidate) -> Choice:
    """What the published formulas say, which take both directions to cost the same."""
    both = candidate.steps, candidate.bandwidth_time
    return Choice(candidate.wiring, candidate.method, candidate.nodes, candidate.degree, *both, *both, None)


def check_size(nodes: int, degree: int) -> None:
    """Raise TopologyError unless a simple graph of `nodes` nodes of `degree` ports exists and can be searched for."""
    if nodes < 2:
        raise TopologyError(f"a network has 2 nodes or more, not {nodes}; ask for more")
    if nodes > MOST_NODES:
        raise TopologyError(f"{nodes} nodes are too many to search; ask for {MOST_NODES} at most")
    if degree < 1:
        raise TopologyError(f"nodes of {degree} ports cannot be wired; ask for a degree of 1 or more")
    if degree >= nodes:
        raise TopologyError(f"no simple graph of {nodes} nodes has degree {degree}; ask for {nodes - 1} at most")
    if degree > MOST_DEGREE:
        raise TopologyError(f"a degree of {degree} is too large to search; ask for {MOST_DEGREE} at most")


def all_to_all_bound(graph: Graph) -> Fraction:
    """In M/B, M the bytes a node sends to all, its own share included: each byte takes up as many links as it has hops
    to go, so that no less than the mean distance, summed over receivers, is needed."""
    from comm_plans.direct_connect.kernels import all_distances

    links = links_of(graph)
    hops = int(all_distances(links.starts, links.sources).sum(dtype=np.int64))
    return Fraction(hops, graph.nodes**2)


def envelope(choices: Sequence[Choice], alpha: float, bandwidth: float) -> list[tuple[Choice, float]]:
    """The wirings that are best for all_gather of some size, each with the bytes from which on it is, ascending."""
    best: list[tuple[Choice, float]] = []
    for choice in sorted(choices, key=lambda each: (each.steps, each.bandwidth_time)):
        while best and (start := _crossing(best[-1][0], choice, alpha, bandwidth)) <= best[-1][1]:
            best.pop()
        best.append((choice, start if best else 0.0))
    return best


def _crossing(fewer: Choice, more: Choice, alpha: float, bandwidth: float) -> float:
    """Bytes at which the one of more steps and less bandwidth time draws level."""
    return alpha * bandwidth * (more.steps - fewer.steps) / float(fewer.bandwidth_time - more.bandwidth_time)


def _cost(graph: Graph) -> tuple[int, Fraction]:
    cost = breadth_first_cost(links_of(graph))
    return cost.steps, cost.bandwidth_time(graph.nodes, graph.degree)


def _expansion_cost(wiring: Wiring, reversed_links: bool) -> tuple[int, Fraction]:
    from comm_plans.direct_connect.plans import expansion

    graph = build(wiring)
    schedule = expansion(wired(str(wiring)), reversed_links)
    return schedule.steps, schedule.seconds * graph.degree / graph.nodes
