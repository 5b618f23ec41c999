"""The flow of one source taken apart into paths to each of its targets, the widest first.

Taking a path from the source to a target out of a single-source flow leaves one, so that the order of targets does not
matter and no path is ever missing (flow decomposition); the widest path empties an arc or ends the demand of its
target, which keeps paths few. Ties go to fewer hops. Unlike the child programs of
arXiv 2309.13541, one residual flow serves all targets and no further linear program is needed.
"""

from __future__ import annotations

import heapq

import numpy as np

from comm_plans.all_to_all.direct.flow_problem import Floats, FlowProblem, Indices
from comm_plans.compiled import compiled

NOISE = 1e-7  # part of a demand that is not worth a path
TINY = 1e-12  # of the largest demand: lets those that drown in the solver's noise find some path


def widest_paths(problem: FlowProblem, flow: Floats) -> tuple[Indices, Floats, Indices, Indices]:
    """Paths of all demands: (source, target) node pairs P × 2, widths P in units, offsets P + 1 into arcs, arcs."""
    order = np.argsort(problem.tails, kind="stable")
    begins = np.searchsorted(problem.tails[order], np.arange(problem.nodes + 1))
    least = float(TINY * problem.demand.max())
    left = np.where(problem.usable, np.maximum(flow, least), 0)
    found = [
        _paths_of_source(
            int(source), problem.demand[place], left[place], least, order, begins, problem.tails, problem.heads
        )
        for place, source in enumerate(problem.sources)
    ]
    targets, widths, lengths, arcs = (np.concatenate(part) for part in zip(*found, strict=True))
    owners = np.repeat(problem.sources, [len(each[0]) for each in found])
    return np.stack([owners, targets], axis=1), widths, np.concatenate([[0], np.cumsum(lengths)]), arcs


@compiled
def _paths_of_source(
    source: int,
    demand: Indices,
    left: Floats,
    least: float,
    order: Indices,
    begins: Indices,
    tails: Indices,
    heads: Indices,
) -> tuple[Indices, Floats, Indices, Indices]:
    """Targets, widths, lengths and arcs of the paths of one source; takes them out of `left`, down to `least`."""
    targets, widths, lengths, arcs = [0][:0], [0.0][:0], [0][:0], [0][:0]
    entered = np.empty(len(begins) - 1, np.int64)
    for target in range(len(demand)):
        missing = float(demand[target])
        while missing > NOISE * demand[target]:
            width = min(missing, _search(source, target, left, order, begins, heads, entered))
            if width <= NOISE * demand[target]:
                if missing < demand[target]:
                    break
                width = missing
            length, node = 0, target
            first = len(arcs)
            while node != source:
                arc = entered[node]
                arcs.append(arc)
                left[arc] = max(least, left[arc] - width)
                node = tails[arc]
                length += 1
            arcs[first:] = arcs[first:][::-1]
            targets.append(target)
            widths.append(width)
            lengths.append(length)
            missing -= width
    return np.array(targets), np.array(widths), np.array(lengths), np.array(arcs)


@compiled
def _search(
    source: int, target: int, left: Floats, order: Indices, begins: Indices, heads: Indices, entered: Indices
) -> float:
    """Width of the widest path, 0 if there is none; `entered` then tells the arc by which each node is reached."""
    best = np.zeros(len(entered))
    hops = np.zeros(len(entered), np.int64)
    best[source] = np.inf
    queue = [(-np.inf, 0, source)]
    while len(queue):
        negative, depth, node = heapq.heappop(queue)
        if node == target:
            return -negative
        if -negative < best[node] or depth > hops[node]:
            continue
        for place in range(begins[node], begins[node + 1]):
            arc = order[place]
            head = heads[arc]
            width = min(-negative, left[arc])
            if width > best[head] or (width == best[head] and width > 0.0 and depth + 1 < hops[head]):
                best[head] = width
                hops[head] = depth + 1
                entered[head] = arc
                heapq.heappush(queue, (-width, depth + 1, head))
    return 0.0
