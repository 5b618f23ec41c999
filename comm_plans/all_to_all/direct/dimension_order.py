"""Dimension-order routing on tori, the usual way where every rank has its place in a grid that wraps around."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product

import numpy as np

from comm_plans.all_to_all.direct.demands import demand_of
from comm_plans.all_to_all.direct.flow_problem import Indices
from comm_plans.all_to_all.direct.routes import Routes, single_paths
from comm_plans.errors import PlansError
from comm_plans.fabrics import torus
from comm_plans.topology import Topology


def dimension_order_paths(topology: Topology, shape: Sequence[int], traffic: Indices | None = None) -> Routes:
    """On a torus numbered row by row: one dimension after the other, the shorter way round, forwards on a tie.

    Raises PlansError where the network is no torus of that shape.
    """
    places = list(product(*(range(size) for size in shape)))
    number = {place: rank for rank, place in enumerate(places)}
    position = {ends: place for place, ends in enumerate(topology.capacities)}
    pairs = np.argwhere(demand_of(topology, traffic))
    walks = ([number[step] for step in _walk(places[one], places[other], shape)] for one, other in pairs)
    try:
        arcs = [[position[ends] for ends in pairwise(walk)] for walk in walks]
    except (KeyError, IndexError) as error:
        raise PlansError(f"{topology.name} is no torus of shape {'x'.join(map(str, shape))}; give its own") from error
    return single_paths(pairs, arcs)


def torus_shape(topology: Topology) -> tuple[int, ...] | None:
    """The shape of a torus numbered row by row, as rings and hypercubes also are; None for other networks."""
    shapes = _shapes(len(topology.nodes))
    return next((shape for shape in shapes if torus(shape).capacities.keys() == topology.capacities.keys()), None)


def _shapes(ranks: int) -> Iterator[tuple[int, ...]]:
    """All ways to write a number as a product of sizes from 2 on, in any order."""
    if ranks == 1:
        yield ()
    for size in range(2, ranks + 1):
        if ranks % size == 0:
            yield from ((size, *rest) for rest in _shapes(ranks // size))


def _walk(start: tuple[int, ...], end: tuple[int, ...], shape: Sequence[int]) -> list[tuple[int, ...]]:
    walk = [start]
    for axis, size in enumerate(shape):
        ahead = (end[axis] - start[axis]) % size
        way = 1 if ahead <= size - ahead else -1
        for _ in range(min(ahead, size - ahead)):
            here = walk[-1]
            walk.append((*here[:axis], (here[axis] + way) % size, *here[axis + 1 :]))
    return walk
