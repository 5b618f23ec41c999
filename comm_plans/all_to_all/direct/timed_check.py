"""Replays a timed schedule chunk by chunk, trusting nothing but the network and what was to be sent.

A chunk is at one place at a time. In each step a sender must hold what it sends when the step begins, the links it
takes must exist with switches between, and what arrives counts from the next step on. At the end every chunk must be
where it belongs. What comes out is how long each step takes on its busiest link, exactly.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import groupby, pairwise

import numpy as np

from comm_plans.all_to_all.direct.flow_problem import Indices
from comm_plans.all_to_all.direct.timed_schedule import Transfer
from comm_plans.errors import PlanError
from comm_plans.topology import Topology


def replay_steps(
    topology: Topology, demand: Indices, chunks: int, transfers: tuple[Transfer, ...], steps: int
) -> tuple[Fraction, ...]:
    """Durations of the steps in units by GB/s. Raises PlanError where a chunk is missing, doubled or lost."""
    ranks = len(topology.ranks)
    place = np.broadcast_to(np.arange(ranks)[:, None, None], (ranks, ranks, chunks)).copy()
    durations, last = [Fraction(0)] * steps, -1
    for step, moving in groupby(transfers, key=lambda each: each.step):
        if not last < step < steps:
            raise PlanError(f"step {step} is not one of {steps} in order, so the schedule is none")
        together, last = list(moving), step
        durations[step] = _duration(topology, demand, chunks, together)
        _advance(topology, place, together)
    there = np.broadcast_to(np.arange(ranks)[None, :, None], place.shape)
    lost = np.argwhere((place != there).any(axis=2) & (demand > 0))
    if len(lost):
        sender, receiver = (topology.ranks[rank] for rank in lost[0])
        raise PlanError(f"not everything from {sender} reaches {receiver}, so the schedule is none")
    return tuple(durations)


def _advance(topology: Topology, place: Indices, together: list[Transfer]) -> None:
    """Let go of everything that moves in a step, then put it where it arrives."""
    for each in together:
        here = place[each.origin, each.destination, each.first : each.end]
        if len(here) != each.end - each.first or (here != each.path[0]).any():
            name = topology.nodes[each.path[0]]
            raise PlanError(f"{name} sends in step {each.step} what it does not hold, so the schedule is none")
        here[:] = -1
    for each in together:
        place[each.origin, each.destination, each.first : each.end] = each.path[-1]


def _duration(topology: Topology, demand: Indices, chunks: int, together: list[Transfer]) -> Fraction:
    load: Counter[tuple[int, int]] = Counter()
    for each in together:
        if any(node < len(topology.ranks) for node in each.path[1:-1]):
            raise PlanError(f"a transfer of step {each.step} passes a rank, which takes a step; the schedule is none")
        for link in pairwise(each.path):
            load[link] += (each.end - each.first) * int(demand[each.origin, each.destination])
    missing = load.keys() - topology.capacities.keys()
    if missing:
        tail, head = (topology.nodes[node] for node in min(missing))
        raise PlanError(f"there is no link from {tail} to {head}, so the schedule is none")
    return max(Fraction(units, chunks) / topology.capacities[link] for link, units in load.items())
