"""The network once for each step: flows that are stored at ranks between synchronous steps.

Node v at the beginning of step t is t·V + v. A link into a rank leads to the next step and one into a switch stays in
its own, since switches keep nothing; holding at a rank is free. What a step carries lengthens it (the time-stepped
flows of arXiv 2309.13541), and data that arrives in a step goes on in a later one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from comm_plans.all_to_all.direct.flow_problem import (
    FREE,
    FlowProblem,
    Indices,
    links_of,
    representatives,
    resources,
)
from comm_plans.forest.symmetry import Permutation, Translations
from comm_plans.topology import Topology


def timed_problem(topology: Topology, demand: Indices, translations: Translations, steps: int) -> FlowProblem:
    """Deliver `demand` (N × N units) in so many steps. Arcs: the links of each step, step by step, then the holding."""
    ends, ranks, size = timed_ends(topology, steps), len(topology.ranks), len(topology.nodes)
    resource, capacity = resources(topology, translations)
    links = len(resource)
    sources = representatives(demand, translations)
    wanted = np.zeros((len(sources), size * (steps + 1)), dtype=np.int64)
    wanted[:, size * steps :][:, :ranks] = demand[sources]
    moving = len(ends) - ranks * steps
    by_step = np.repeat(np.arange(steps), links)
    return FlowProblem(
        nodes=size * (steps + 1),
        tails=ends[:, 0],
        heads=ends[:, 1],
        resource=np.append(np.tile(resource, steps) + by_step * len(capacity), np.full(ranks * steps, FREE)),
        capacity=capacity * steps,
        step=np.repeat(np.arange(steps), len(capacity)),
        sources=sources,
        demand=wanted,
        weight=len(translations.elements),
        usable=_usable(ends, sources, size, moving),
    )


def timed_ends(topology: Topology, steps: int) -> Indices:
    """Both ends of each arc; shape (A, 2)."""
    links, ranks, size = links_of(topology), len(topology.ranks), len(topology.nodes)
    step = np.repeat(np.arange(steps), len(links))[:, None] * size
    later = np.where(links[:, 1] < ranks, size, 0)
    moving = np.tile(links + np.stack([np.zeros_like(later), later], axis=1), (steps, 1)) + step
    held = (np.arange(steps)[:, None] * size + np.arange(ranks)).ravel()
    return np.concatenate([moving, np.stack([held, held + size], axis=1)])


def timed_elements(translations: Translations, steps: int) -> list[Permutation]:
    """The translations of the network on the nodes of all steps."""
    size = len(translations.elements[0])
    return [tuple(t * size + node for t in range(steps + 1) for node in each) for each in translations.elements]


def _usable(ends: Indices, sources: Indices, size: int, moving: int) -> NDArray[np.bool_]:
    """Arcs that data of each source can be on: it has had the time to come, and is not led back home."""
    usable = np.zeros((len(sources), len(ends)), dtype=bool)
    for row, source in enumerate(sources):
        back = (ends[:, 1] % size == source) & (np.arange(len(ends)) < moving)
        reached = np.zeros(ends.max() + 1, dtype=bool)
        reached[source], before = True, 0
        while before != reached.sum():
            before = reached.sum()
            usable[row] = reached[ends[:, 0]] & ~back
            reached[ends[usable[row], 1]] = True
    return usable
