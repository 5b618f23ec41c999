"""What a network is asked to carry: demands from sources to nodes over arcs that draw on shared capacities.

One form serves flows in steady state (one step) and flows in synchronous steps (a copy of the network a step): ship
every demand so that the durations of all steps, added up, are least. Where translations of the network take sources to
each other one of them stands for all, and arcs that are taken to each other share one capacity.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from comm_plans.forest.symmetry import Translations, find_translations
from comm_plans.topology import Topology

Indices = NDArray[np.int64]
Floats = NDArray[np.float64]
FREE = -1


@dataclass(frozen=True, eq=False)
class FlowProblem:
    """Minimise Σ duration[step], where what arcs of resource r carry is at most capacity[r] · duration[step[r]].

    tails, heads, resource: A arcs; resource FREE limits nothing. capacity, step: R resources.
    sources: S nodes. demand: S × V units to deliver at each node, integers. weight: how many sources each stands for.
    usable: S × A, which arcs the flow of a source may take.
    """

    nodes: int
    tails: Indices
    heads: Indices
    resource: Indices
    capacity: tuple[Fraction, ...]
    step: Indices
    sources: Indices
    demand: Indices
    weight: int
    usable: NDArray[np.bool_]


def steady_problem(
    topology: Topology, demand: Indices, translations: Translations, usable: NDArray[np.bool_] | None = None
) -> FlowProblem:
    """Flows that run all the time: one step, its duration the time in which all demands are met.

    demand: N × N units between ranks; with several translations all off-diagonal ones must be equal.
    usable: N × A, which links the flow of a rank may take; by default those that do not lead back to it.
    """
    links = links_of(topology)
    resource, capacity = resources(topology, translations)
    sources = representatives(demand, translations)
    if usable is None:
        usable = np.ones((len(topology.ranks), len(links)), dtype=bool)
    wanted = np.zeros((len(sources), len(topology.nodes)), dtype=np.int64)
    wanted[:, : len(topology.ranks)] = demand[sources]
    return FlowProblem(
        nodes=len(topology.nodes),
        tails=links[:, 0],
        heads=links[:, 1],
        resource=resource,
        capacity=capacity,
        step=np.zeros(len(capacity), dtype=np.int64),
        sources=sources,
        demand=wanted,
        weight=len(translations.elements),
        usable=usable[sources] & (links[:, 1] != sources[:, None]),
    )


def links_of(topology: Topology) -> Indices:
    """Node numbers of both ends of each link, in the order of `topology.capacities`; shape (A, 2)."""
    return np.array(list(topology.capacities), dtype=np.int64).reshape(-1, 2)


def bandwidths_of(topology: Topology) -> Floats:
    """GB/s of each link, in the same order."""
    return np.array([float(each) for each in topology.capacities.values()])


def translations_of(topology: Topology, alike: bool) -> Translations:
    """Translations of the network if all pairs send `alike`; only the identity else."""
    if alike:
        return find_translations(topology.capacities, len(topology.ranks), len(topology.nodes))
    return Translations((tuple(range(len(topology.nodes))),), ())


def representatives(demand: Indices, translations: Translations) -> Indices:
    """One rank of each orbit that has something to send."""
    first = np.min(np.array(translations.elements)[:, : len(demand)], axis=0)
    return np.flatnonzero((first == np.arange(len(demand))) & demand.any(axis=1))


def resources(topology: Topology, translations: Translations) -> tuple[Indices, tuple[Fraction, ...]]:
    """The orbit of each link, and what all links of an orbit carry together in GB/s."""
    orbits = translations.orbits(list(topology.capacities))
    total = [Fraction(0)] * (max(orbits.values()) + 1)
    for link, bandwidth in topology.capacities.items():
        total[orbits[link]] += bandwidth
    return np.array([orbits[link] for link in topology.capacities]), tuple(total)
