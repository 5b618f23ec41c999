"""The face: a network and what is to be sent in; verified routes at the network's optimum out."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from time import perf_counter

import numpy as np

from comm_plans.all_to_all.direct.demands import demand_of, is_uniform
from comm_plans.all_to_all.direct.flow_problem import Indices, links_of, steady_problem, translations_of
from comm_plans.all_to_all.direct.linear_program import solve_flows
from comm_plans.all_to_all.direct.lower_bound import proved_bound
from comm_plans.all_to_all.direct.route_check import replayed
from comm_plans.all_to_all.direct.routes import Routes, everywhere, joined, routes_of_flow
from comm_plans.fabrics import ring
from comm_plans.forest.symmetry import Translations
from comm_plans.topology import Topology


@dataclass(frozen=True, eq=False)
class DirectResult:
    """Routes of an all-to-all and what they reach.

    pair_rate: GB/s from each rank to each other one, all at once, exactly what the routes reach; with traffic, that of
    its largest entry. bound: no routes exceed it (exact, from a dual certificate). algbw: GB/s, the largest send buffer
    of a rank, its own share included, over the completion time. representatives: the routes of some ranks, from which
    `translations` make those of all.
    """

    topology: Topology
    demand: Indices
    pair_rate: Fraction
    bound: Fraction
    algbw: Fraction
    representatives: Routes
    translations: Translations
    verified: bool
    solve_seconds: float

    @property
    def duality_gap(self) -> Fraction:
        """How much faster anything could be, relative to `bound`; 0 is a proof that nothing is."""
        return 1 - self.pair_rate / self.bound

    @property
    def exact(self) -> bool:
        """Whether `pair_rate` is proved to be the optimum."""
        return self.pair_rate == self.bound

    @property
    def seconds(self) -> Fraction:
        """Completion time of the traffic (in bytes), or of one byte a pair without; exact, latency left out."""
        return int(self.demand.max()) / self.pair_rate / 10**9

    @cached_property
    def routes(self) -> Routes:
        """The routes of all pairs, in node numbers and positions of `topology.capacities`."""
        return joined(list(everywhere(links_of(self.topology), self.representatives, self.translations.elements)))

    def summary(self) -> dict[str, object]:
        """What `comm-plan all-to-all --json` prints of it."""
        return {
            "topology": self.topology.name,
            "ranks": len(self.topology.ranks),
            "pair_rate": str(self.pair_rate) if self.exact else float(self.pair_rate),
            "duality_gap": float(self.duality_gap),
            "algbw": str(self.algbw) if self.exact else float(self.algbw),
            "verified": self.verified,
            "solve_seconds": self.solve_seconds,
        }


def direct_all_to_all(topology: Topology, traffic: Indices | None = None) -> DirectResult:
    """The best routes of an all-to-all on `topology`, whose switches forward only; ranks forward for others too.

    traffic: N × N whole numbers of bytes from rank to rank, the diagonal staying where it is; by default every rank
    sends every other one the same. The routes carry all pairs at once in the proportions of the traffic.
    Raises a PlansError (one sentence) where the network cannot carry the traffic or the traffic makes no sense.
    """
    started = perf_counter()
    demand = demand_of(topology, traffic)
    translations = translations_of(topology, alike=is_uniform(demand))
    problem = steady_problem(topology, demand, translations)
    flows = solve_flows(problem)
    representatives = routes_of_flow(problem, flows.flow)
    duration = replayed(topology, demand, everywhere(links_of(topology), representatives, translations.elements))
    most = int(demand.max())
    buffer = len(demand) if traffic is None else int(np.asarray(traffic).sum(axis=1, dtype=object).max())
    return DirectResult(
        topology=topology,
        demand=demand,
        pair_rate=most / duration,
        bound=most / proved_bound(problem, flows.price),
        algbw=buffer / duration,
        representatives=representatives,
        translations=translations,
        verified=True,
        solve_seconds=round(perf_counter() - started, 6),
    )


def load() -> None:
    """Compile and load what the first plan would, so that `solve_seconds` tells of solving."""
    direct_all_to_all(ring(3))
