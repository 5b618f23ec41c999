"""Rows of the all-to-all benchmark about direct networks: how fast optimal routes are found and how near they are.

Generalised Kautz graphs of degree 4 stand for networks without much symmetry, a torus of 1000 ranks for those with it.
`gap` is what the dual certificate leaves open; 0 is a proof. Replays of all routes are included in the times.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from statistics import median
from time import perf_counter
from typing import Any

from comm_plans.all_to_all.direct import DirectResult, direct_all_to_all
from comm_plans.all_to_all.direct.baselines import equal_split_rate, least_loaded_paths, rate_of, shortest_path_flow
from comm_plans.all_to_all.direct.route_tables import route_table
from comm_plans.all_to_all.direct.timed_flows import timed_all_to_all
from comm_plans.direct_connect.fabric import wired
from comm_plans.fabrics import fabric
from comm_plans.topology import Topology

Row = dict[str, Any]
NODES = (16, 32, 64, 128, 256)
REPLANNED = ("torus:shape=4x4", "K(4,4)")
COMPARED = ("torus:shape=4x4", "Pi(4,16)", "Pi(4,32)")
REPEATS = 3


def rows(quick: bool) -> tuple[list[Row], dict[str, Any]]:
    """All rows, and the summary."""
    _load()
    solved = {str(nodes): _solved(wired(f"Pi(4,{nodes})")) for nodes in NODES[: 4 if quick else 5]}
    solved["1000"] = _solved(fabric("torus:shape=10x10x10"))
    replanned = {name: _replanned(name) for name in REPLANNED}
    stepped = [_stepped(27, 3), _stepped(27, 4), _stepped(32, 4)]
    compared = [_compared(name) for name in COMPARED]
    summary = {
        "mcf_seconds_by_nodes": {nodes: median(row["seconds"]) for nodes, row in solved.items()},
        "mcf_gap_by_nodes": {nodes: row["gap"] for nodes, row in solved.items()},
        "replan_seconds": {name: median(row["seconds"]) for name, row in replanned.items()},
    }
    return [*solved.values(), *replanned.values(), *stepped, *compared], summary


def _load() -> None:
    """Compile and load what the first plan would."""
    route_table(direct_all_to_all(wired("Pi(4,16)")))
    timed_all_to_all(fabric("ring:ranks=3"))


def _timed(work: Callable[[], Any], repeats: int = REPEATS) -> tuple[list[float], Any]:
    seconds, outcome = [], None
    for _ in range(repeats):
        started = perf_counter()
        outcome = work()
        seconds.append(perf_counter() - started)
    return seconds, outcome


def _solved(topology: Topology) -> Row:
    large = len(topology.ranks) > 128
    seconds, result = _timed(lambda: direct_all_to_all(topology), 1 if large else REPEATS)
    return {"what": "flows", "case": topology.name, "seconds": seconds, **_reached(result)}


def _replanned(name: str) -> Row:
    """The first cable fails; what is timed ends with a table of routes in chunks and layers."""
    healthy = fabric(name) if ":" in name else wired(name)
    link = healthy.links[0]
    gone = {(link.source, link.target), (link.target, link.source)}
    left = [each for each in healthy.links if (each.source, each.target) not in gone]
    broken = Topology(f"{name} after a failure", healthy.ranks, (), tuple(left))
    seconds, _ = _timed(lambda: route_table(direct_all_to_all(broken)), 5 * REPEATS)
    return {"what": "plan again", "case": broken.name, "seconds": seconds, **_reached(direct_all_to_all(broken))}


def _stepped(nodes: int, steps: int) -> Row:
    topology = wired(f"Pi(4,{nodes})")
    seconds, result = _timed(lambda: timed_all_to_all(topology, steps=steps), 1)
    gap = float(1 - result.bound / result.fluid)
    return {"what": f"{steps} steps", "case": topology.name, "seconds": seconds, "gap": gap}


def _compared(name: str) -> Row:
    """Rates of other ways over the optimum's."""
    topology = fabric(name) if ":" in name else wired(name)
    best = direct_all_to_all(topology).pair_rate
    return {
        "what": "routes",
        "case": name,
        "pair_rate": str(best),
        "shortest_only": float(rate_of(topology, shortest_path_flow(topology)) / best),
        "equal_split": float(Fraction(equal_split_rate(topology)) / best),
        "least_loaded": float(rate_of(topology, least_loaded_paths(topology)) / best),
        "in_chunks": float(Fraction(route_table(direct_all_to_all(topology))["pair_rate"]) / best),
    }


def _reached(result: DirectResult) -> Row:
    return {
        "gap": float(result.duality_gap),
        "pair_rate": str(result.pair_rate) if result.exact else float(result.pair_rate),
    }
