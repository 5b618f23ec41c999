"""How long it takes to find wirings, to cost them exactly, and to emit and verify their schedules.

Compilation is excluded by a first small run. Frontiers start from an empty finder each time; the real-cost one covers
all numbers of nodes up to 1024 (quick: 256) and all degrees up to 8, generalised Kautz graphs included.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

from comm_plans.direct_connect import catalogue
from comm_plans.direct_connect.breadth_first import breadth_first_cost, links_of
from comm_plans.direct_connect.expression import build, parse
from comm_plans.direct_connect.fabric import wired
from comm_plans.direct_connect.finder import Finder
from comm_plans.solve import solve

Row = dict[str, Any]
REPEATS = 3
FORMULA_DEGREES = (2, 4, 8)
COSTED = ("Pi(4,1024)", "C(1024,23,24)")
EMITTED = {256: "L^2(C(16,3,4))", 1024: "L^3(C(16,3,4))"}


def run(quick: bool) -> tuple[list[Row], dict[str, Any]]:
    """A row a measurement with all its samples in seconds, and the summary."""
    _compile()
    nodes = 256 if quick else 1024
    rows = [_row(f"formula frontiers to 1024, degree {d}", REPEATS, lambda d=d: _formulas(d)) for d in FORMULA_DEGREES]
    rows.append(_row(f"real-cost frontiers to {nodes}, degrees to 8", 1, lambda: _real(nodes)))
    rows += [_row(f"cost of {word}", REPEATS, lambda word=word: _cost(word)) for word in COSTED]
    sizes = {256: EMITTED[256]} if quick else EMITTED
    rows += [_row(f"emit and verify {word}", REPEATS, lambda word=word: _emit(word)) for word in sizes.values()]
    return rows, _summary(rows, list(sizes))


def _formulas(degree: int) -> str:
    finder = Finder(real=False)
    found = sum(len(finder.front(nodes, degree).best) for nodes in range(2, 1025))
    return f"{found} wirings"


def _real(most: int) -> str:
    catalogue.kautz_like.cache_clear()
    finder = Finder()
    sizes = [(nodes, degree) for nodes in range(2, most + 1) for degree in range(1, min(8, nodes - 1) + 1)]
    return f"{sum(len(finder.frontier(*size)) for size in sizes)} wirings"


def _cost(word: str) -> str:
    graph = build(parse(word))
    cost = breadth_first_cost(links_of(graph))
    return f"{cost.steps}; {cost.bandwidth_time(graph.nodes, graph.degree)}"


def _emit(word: str) -> str:
    plan = solve(wired(word), "all_gather", method="breadth_first")
    return f"{len(plan.trees)} trees, {plan.algbw} GB/s"


def _row(what: str, repeats: int, measure: Callable[[], str]) -> Row:
    samples = []
    for _ in range(repeats):
        started = perf_counter()
        outcome = measure()
        samples.append(perf_counter() - started)
    return {"what": what, "seconds": samples, "outcome": outcome}


def _compile() -> None:
    solve(wired("L(K(4))"), "all_gather", method="breadth_first")
    Finder().frontier(16, 4)


def _summary(rows: list[Row], sizes: list[int]) -> dict[str, Any]:
    seconds = [median(row["seconds"]) for row in rows]
    frontier = Finder().frontier(1024, 4)
    return {
        "frontier_seconds_by_degree": {str(degree): seconds[place] for place, degree in enumerate(FORMULA_DEGREES)},
        "real_cost_frontier_seconds": seconds[3],
        "bfb_seconds_1024": seconds[4],
        "cayley_bfb_seconds_1024": seconds[5],
        "emit_verify_seconds_by_nodes": {str(nodes): seconds[6 + place] for place, nodes in enumerate(sizes)},
        "frontier_1024_4": [
            {"topology": str(each.wiring), "steps": each.steps, "bandwidth_time": str(each.bandwidth_time)}
            for each in frontier
        ],
    }
