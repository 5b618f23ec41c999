"""A proof that no flow is faster: lengths of resources, and how far everything has to travel under them.

Give every arc of resource r the length l_r ≥ 0. Whatever the flow, Σ_r load_r · l_r is at least the sum of demands
times distances, and at most Σ_r capacity_r · l_r · duration; so the durations add up to at least the distances over the
capacities (the dual of maximum concurrent flow: Shahrokhi and Matula, JACM 1990). Any lengths prove something, those
that the linear program prices prove the optimum; distances are summed as integers.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from comm_plans.all_to_all.direct.common_denominator import common_fractions
from comm_plans.all_to_all.direct.flow_problem import FREE, Floats, FlowProblem, Indices

FINE = 2**36  # distances over up to 2¹⁶ arcs stay exact in floats


def proved_bound(problem: FlowProblem, price: Floats) -> Fraction:
    """Least sum of durations, in units of demand a GB/s, that the solver's prices prove; exact arithmetic.

    The prices are tried as fractions of small denominators, which the optimum usually has, and as they are.
    """
    if not price.any():
        return Fraction(0)
    relative = price / price.max()
    small, _ = common_fractions(relative, FINE)
    fine = np.floor(relative * FINE).astype(np.int64)
    return max(bound_by(problem, lengths) for lengths in ([fine] if small is None else [small, fine]))


def bound_by(problem: FlowProblem, lengths: Indices) -> Fraction:
    """The bound that integer lengths of the resources prove."""
    arcs = np.where(problem.resource == FREE, 0, lengths[problem.resource])
    graph = csr_matrix((arcs.astype(float), (problem.tails, problem.heads)), shape=(problem.nodes,) * 2)
    distances = dijkstra(graph, indices=problem.sources)
    wanted = problem.demand > 0
    travelled = sum(
        units * int(distance)
        for units, distance in zip(problem.demand[wanted].tolist(), distances[wanted].tolist(), strict=True)
    )
    room = [Fraction(0)] * (int(problem.step.max()) + 1)
    for step, capacity, length in zip(problem.step.tolist(), problem.capacity, lengths.tolist(), strict=True):
        room[step] += capacity * length
    return Fraction(problem.weight * travelled) / max(room)
