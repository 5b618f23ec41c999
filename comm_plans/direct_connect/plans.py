"""Stepped plans on networks without switches: all_gather, its mirror reduce_scatter, and both for all_reduce.

A schedule of reduce_scatter is one of all_gather on the network with all links reversed, run backwards: each part of
a shard travels a tree, and the same tree adds up towards the root. The two halves of an all_reduce cost the same only
where network and reversed network do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from comm_plans.direct_connect.bounds import best_bound
from comm_plans.direct_connect.breadth_first import breadth_first_cost, links_between
from comm_plans.direct_connect.expansions import expanded_spreads
from comm_plans.direct_connect.fabric import read_wired, wired
from comm_plans.direct_connect.splits import breadth_first_spreads
from comm_plans.direct_connect.spreads import Spread, loads_of
from comm_plans.direct_connect.trees import TreeMaker
from comm_plans.direct_connect.words import is_wiring
from comm_plans.errors import PlansError, TopologyError, listed
from comm_plans.plan import Plan, Tree
from comm_plans.topology import Topology

COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce")
METHODS = ("breadth_first", "expansion")
Scheduler = Callable[[Topology, bool], "Schedule"]


@dataclass(frozen=True)
class Schedule:
    """Spreads of an all_gather in `steps` steps; `seconds` is how long a shard of a GB takes without latencies."""

    spreads: Iterable[Spread]
    steps: int
    seconds: Fraction


def direct_plan(topology: Topology, collective: str, method: str) -> Plan:
    """A plan by `breadth_first`, or by the `expansion` that the network's name describes; not yet verified.

    Raises PlansError for another collective, a network with switches, and `expansion` where the name is no wiring.
    """
    if collective not in COLLECTIVES:
        raise PlansError(f"{method} plans {', '.join(COLLECTIVES)}; for {collective} take the method forest")
    if topology.switches:
        names = listed(switch.name for switch in topology.switches)
        raise TopologyError(f"{topology.name} has the switches {names}; {method} needs ranks that are linked directly")
    trees, seconds = _trees(topology, collective, breadth_first if method == "breadth_first" else expansion)
    algbw = len(topology.ranks) / seconds
    optimum, cut = best_bound(topology, collective, algbw)
    return Plan(
        collective=collective,
        topology=topology,
        trees=trees,
        shards=(Fraction(1, len(topology.ranks)),) * len(topology.ranks),
        algbw=algbw,
        optimal=algbw == optimum,
        optimum=optimum,
        bottleneck=cut,
        method=method,
    )


def breadth_first(topology: Topology, reversed_links: bool) -> Schedule:
    """The breadth-first schedule, on all links reversed if `reversed_links`."""
    links = links_between(_capacities(topology, reversed_links), len(topology.ranks))
    cost = breadth_first_cost(links)
    return Schedule(breadth_first_spreads(links, cost.loads), cost.steps, sum(cost.loads, Fraction(0)) / links.unit)


def expansion(topology: Topology, reversed_links: bool) -> Schedule:
    """The schedule that follows the structure of the wiring that the network's name describes."""
    wiring, bandwidth = read_wired(_checked_name(topology))
    spreads = expanded_spreads(wiring, reversed_links)
    arcs = np.zeros((len(topology.ranks),) * 2, dtype=np.int64)
    for ends, capacity in _capacities(topology, reversed_links).items():
        arcs[ends] = capacity / bandwidth
    loads = loads_of(spreads, arcs)
    return Schedule(spreads, len(loads), sum(loads, Fraction(0)) / bandwidth)


def _trees(topology: Topology, collective: str, schedule: Scheduler) -> tuple[tuple[Tree, ...], Fraction]:
    """The trees of both halves, as far as the collective has them, and the seconds they need a GB of shard."""
    maker = TreeMaker(topology.capacities, len(topology.ranks))
    trees: tuple[Tree, ...] = ()
    steps, seconds = 0, Fraction(0)
    if collective != "all_gather":
        half = schedule(topology, True)
        trees, steps, seconds = maker.reductions(half.spreads, half.steps), half.steps, half.seconds
    if collective != "reduce_scatter":
        half = schedule(topology, False)
        trees, seconds = trees + maker.broadcasts(half.spreads, steps), seconds + half.seconds
    return trees, seconds


def _capacities(topology: Topology, reversed_links: bool) -> Mapping[tuple[int, int], Fraction]:
    if not reversed_links:
        return topology.capacities
    return {(target, source): bandwidth for (source, target), bandwidth in topology.capacities.items()}


def _checked_name(topology: Topology) -> str:
    """The name, if it is a wiring and describes just these links."""
    if not is_wiring(topology.name):
        raise TopologyError(
            f"{topology.name} is no wiring such as L^2(C(16,3,4)), which expansion needs; take the method breadth_first"
        )
    if wired(topology.name).capacities != topology.capacities:
        raise TopologyError(f"the links are not those of the wiring {topology.name}; take the method breadth_first")
    return topology.name
