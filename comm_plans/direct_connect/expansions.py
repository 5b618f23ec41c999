"""How a schedule grows with its graph: line graphs, degree expansions and powers (arXiv 2202.03356, § on expansions).

A base graph or a product is spread breadth first; each operation then maps the spreads of what it was applied to.
Transposing a wiring means transposing the base graphs in it: the arcs of an operation's result are then reversed too,
node by node.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np

from comm_plans.direct_connect.breadth_first import breadth_first_cost, links_of
from comm_plans.direct_connect.expression import Copies, Line, Power, Wiring, build
from comm_plans.direct_connect.graphs import Graph, Indices
from comm_plans.direct_connect.splits import breadth_first_spreads
from comm_plans.direct_connect.spreads import Spread, by_root, common_parts
from comm_plans.errors import TopologyError


def expanded_spreads(wiring: Wiring, transposed: bool = False) -> list[Spread]:
    """The all_gather schedule that follows the structure of the wiring; on all arcs reversed if `transposed`.

    Raises TopologyError for a degree expansion of a graph with loops, or any expansion of one with parallel arcs.
    """
    match wiring:
        case Line(of, times):
            before = of if times == 1 else Line(of, times - 1)
            graph = _base(before, transposed)
            return [new for old in expanded_spreads(before, transposed) for new in _lined(graph, old)]
        case Copies(of, count):
            return list(_copied(_base(of, transposed), expanded_spreads(of, transposed), count))
        case Power(of, exponent):
            return list(_powered(build(of).nodes, expanded_spreads(of, transposed), exponent))
        case _:
            links = links_of(_oriented(build(wiring), transposed))
            return list(breadth_first_spreads(links, breadth_first_cost(links).loads))


def _oriented(graph: Graph, transposed: bool) -> Graph:
    return graph.transposed() if transposed else graph


def _base(wiring: Wiring, transposed: bool) -> Graph:
    graph = _oriented(build(wiring), transposed)
    if not graph.is_simple:
        raise TopologyError(f"{wiring} has parallel arcs, which no expansion follows; take the method breadth_first")
    return graph


def _lined(graph: Graph, spread: Spread) -> Iterator[Spread]:
    """Arc p into the root tells all arcs that follow it; one step after it crossed arc (u, w) of the base, data goes
    from that arc to all arcs out of w."""
    arc_between = np.zeros((graph.nodes, graph.nodes), dtype=np.int64)
    arc_between[graph.arcs[:, 0], graph.arcs[:, 1]] = np.arange(len(graph.arcs))
    first = graph.leaving[spread.root]
    later = graph.leaving[spread.targets]
    relays = np.repeat(arc_between[spread.sources, spread.targets], graph.degree)
    targets = np.append(first, later.ravel())
    steps = np.append(np.ones_like(first), np.repeat(spread.steps + 1, graph.degree))
    for root in np.flatnonzero(graph.arcs[:, 1] == spread.root).tolist():
        sources, others = np.append(np.full_like(first, root), relays), targets != root
        yield Spread(root, spread.start, spread.share, sources[others], targets[others], steps[others])


def _copied(graph: Graph, spreads: list[Spread], count: int) -> Iterator[Spread]:
    """Copies relay along their own kind to all copies; one more step brings the root's shard to its other copies, an
    equal piece over every link into them."""
    if graph.has_loops:
        raise TopologyError("a degree expansion needs a graph without loops; take another base or breadth_first")
    last = max(int(spread.steps.max()) for spread in spreads) + 1
    pieces = graph.degree * count
    for spread, copy in product(spreads, range(count)):
        root = spread.root * count + copy
        sources = np.repeat(spread.sources * count + copy, count)
        targets = (spread.targets[:, None] * count + np.arange(count)).ravel()
        steps = np.repeat(spread.steps, count)
        twins = np.array([spread.root * count + other for other in range(count) if other != copy], dtype=np.int64)
        senders = graph.arcs[graph.arcs[:, 1] == spread.root, 0]
        feeders = (senders[:, None] * count + np.arange(count)).ravel()
        ends = np.append(targets, twins), np.append(steps, np.full_like(twins, last))
        for piece, feeder in enumerate(feeders.tolist()):
            whole = Spread(root, spread.start, spread.share, np.append(sources, np.full_like(twins, feeder)), *ends)
            part = whole.restricted(Fraction(piece, pieces), Fraction(piece + 1, pieces))
            if part is not None:
                yield part


def _powered(nodes: int, spreads: list[Spread], exponent: int) -> Iterator[Spread]:
    """The shard in `exponent` equal parts; part p walks the dimensions p, p + 1 … in turn, all parts at once."""
    of_root = by_root(spreads)
    phase = max(int(spread.steps.max()) for spread in spreads)
    strides = [nodes ** (exponent - 1 - dimension) for dimension in range(exponent)]
    for root in product(range(nodes), repeat=exponent):
        for start, share, chosen in common_parts([of_root[place] for place in root]):
            for part in range(exponent):
                walk = [(part + turn) % exponent for turn in range(exponent)]
                edges = _walked(nodes, root, chosen, walk, strides, phase)
                number = sum(place * stride for place, stride in zip(root, strides, strict=True))
                yield Spread(number, (part + start) / exponent, share / exponent, *edges)


def _walked(
    nodes: int, root: tuple[int, ...], chosen: list[Spread], walk: list[int], strides: list[int], phase: int
) -> tuple[Indices, Indices, Indices]:
    """Sources, targets and steps of one part: dimension after dimension, along all lines that hold the data by then."""
    standing = sum(place * stride for place, stride in zip(root, strides, strict=True))
    holders = np.zeros(1, dtype=np.int64)  # offsets in the dimensions already walked
    rows = []
    for turn, dimension in enumerate(walk):
        stride, spread = strides[dimension], chosen[dimension]
        standing -= root[dimension] * stride
        ends = [(standing + stride * nodes_[:, None] + holders).ravel() for nodes_ in (spread.sources, spread.targets)]
        rows.append((*ends, np.repeat(turn * phase + spread.steps, len(holders))))
        holders = (holders[:, None] + stride * np.arange(nodes)).ravel()
    sources, targets, steps = (np.concatenate(column) for column in zip(*rows, strict=True))
    return sources, targets, steps
