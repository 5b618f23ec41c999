"""The base graphs that the finder starts from, by number of nodes and degree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from math import isqrt

from comm_plans.direct_connect.candidates import Candidate, least_time, measured
from comm_plans.direct_connect.expression import Base, Wiring, parse
from comm_plans.direct_connect.seeds import read_seeds

DISTANCE_REGULAR = (
    "Kneser(5,2)", "PG(2)", "GQ(2)", "Johnson(4,2)", "Crown(5)", "CoPG(2)", "Edges(Kneser(5,2))", "Edges(PG(2))",
    "PG(3)", "AG4()", "Kneser(7,3)", "Edges(GQ(2))", "DoubledOdd(4)", "GQ(3)",
)  # fmt: skip

# Steps of bandwidth-optimal schedules on de Bruijn graphs with their loops rewired, by (nodes, degree); arXiv
# 2202.03356 gives these costs, the arcs are not known. Their schedules are not breadth-first.
PUBLISHED = {(8, 2): 4, (16, 2): 5, (9, 3): 3, (16, 4): 3}


def published_bases(nodes: int, degree: int) -> Iterator[Candidate]:
    """The base graphs of arXiv 2202.03356."""
    yield from optimal_bases(nodes, degree)
    if (nodes, degree) in PUBLISHED:
        length = next(length for length in range(2, 5) if degree**length == nodes)
        yield _optimal(_base("DBJMod", degree, length), nodes, degree, PUBLISHED[nodes, degree], None, "published")


def all_bases(nodes: int, degree: int) -> Iterator[Candidate]:
    """Those whose graph is known, and distance-regular and Cayley graphs."""
    yield from optimal_bases(nodes, degree)
    yield from _special_bases().get((nodes, degree), ())


def optimal_bases(nodes: int, degree: int) -> Iterator[Candidate]:
    """Families on which breadth-first broadcast is bandwidth-optimal, with their steps and uniform returns."""
    if nodes < 2:
        return
    if degree == 1:
        yield _optimal(_base("U", nodes), nodes, degree, nodes - 1, nodes - 1)
    if degree == nodes - 1:
        yield _optimal(_base("K", nodes), nodes, degree, 1, 1)
    if nodes == 2 * degree and degree > 1:
        yield _optimal(_base("K", degree, degree), nodes, degree, 2, 1)
    if nodes == degree + 2 and degree > 1:
        yield _optimal(_base("DiC", nodes, *range(1, nodes - 1)), nodes, degree, 2, None)
    if degree == 2 and nodes > 2:
        yield _optimal(_base("B", nodes), nodes, degree, nodes // 2, 1)
    if (nodes, degree) == (8, 2):
        yield replace(_optimal(_base("DiC", 8, 1, 3), nodes, degree, 3, 3), lines=2)
    jump = (isqrt(2 * nodes - 2) + 1) // 2  # ceil((−1 + √(2n − 1)) / 2)
    if degree == 4 and nodes >= 7 and 2 * (jump + 1) != nodes:
        yield _optimal(_base("C", nodes, jump, jump + 1), nodes, degree, jump, 1)


@cache
def kautz_like(nodes: int, degree: int) -> Candidate:
    """Pi(d,m): nearly the fewest steps for any number of nodes, at up to twice the least bandwidth time."""
    return measured(_base("Pi", degree, nodes))


def _optimal(
    wiring: Wiring, nodes: int, degree: int, steps: int, returns: int | None, method: str = "breadth_first"
) -> Candidate:
    return Candidate(wiring, nodes, degree, steps, least_time(nodes), method, returns)


def _base(family: str, *numbers: int) -> Wiring:
    return Base(family, tuple(map(str, numbers)))


@cache
def _special_bases() -> dict[tuple[int, int], list[Candidate]]:
    found = {size: list(front) for size, front in read_seeds().items()}
    for candidate in map(measured, map(parse, DISTANCE_REGULAR)):
        found.setdefault((candidate.nodes, candidate.degree), []).append(candidate)
    return found
