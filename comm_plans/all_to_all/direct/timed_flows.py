"""All-to-all in synchronous steps: ranks store what they receive and send it on in a later step.

The best durations of T steps come from one flow problem; more steps never make them longer in sum, but each costs a
latency. Data moves in whole chunks, so that a schedule can be executed as it stands.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from time import perf_counter

import numpy as np

from comm_plans.all_to_all.direct.demands import demand_of, is_uniform
from comm_plans.all_to_all.direct.flow_problem import Indices, bandwidths_of, steady_problem, translations_of
from comm_plans.all_to_all.direct.linear_program import solve_flows
from comm_plans.all_to_all.direct.lower_bound import proved_bound
from comm_plans.all_to_all.direct.paths import hops_between
from comm_plans.all_to_all.direct.rounding import default_chunks, in_chunks
from comm_plans.all_to_all.direct.routes import Routes, everywhere, joined, loads, routes_of_flow, slowest
from comm_plans.all_to_all.direct.timed_check import replay_steps
from comm_plans.all_to_all.direct.timed_problem import timed_elements, timed_ends, timed_problem
from comm_plans.all_to_all.direct.timed_schedule import TimedSchedule, transfers_of
from comm_plans.errors import PlansError
from comm_plans.forest.symmetry import Translations
from comm_plans.topology import Topology

SHORTEST = 1e-9  # duration of a step in which nothing was to move
WORTHWHILE = 1e-6  # of the transfer time, for which one more step is tried when steps cost nothing


@dataclass(frozen=True, eq=False)
class TimedResult:
    """A verified schedule, and what its steps could take.

    fluid: sum of the steps' durations before data is cut into chunks, in units by GB/s, exactly what the flow reaches.
    bound: no schedule of so many steps is shorter (exact, from a dual certificate).
    """

    schedule: TimedSchedule
    fluid: Fraction
    bound: Fraction
    solve_seconds: float


def timed_all_to_all(
    topology: Topology,
    traffic: Indices | None = None,
    *,
    steps: int | None = None,
    latency: float = 0.0,
    pair_bytes: int = 1,
    chunks: int | None = None,
) -> TimedResult:
    """The best schedule in `steps` steps, or in as many as make latency · steps + transfer time least.

    latency: seconds a step. pair_bytes: what each rank sends each other one, where no `traffic` (bytes) is given.
    chunks: pieces that each pair's data is cut into; by default those of the exact optimum if they are few, else 32.
    Raises a PlansError as `direct_all_to_all` does, also for fewer steps than the farthest pair is apart.
    """
    started = perf_counter()
    demand = demand_of(topology, traffic)
    planner = _Planner(topology, demand, translations_of(topology, alike=is_uniform(demand)))
    if steps is None:
        plan = planner.best(latency, 1e-9 * (pair_bytes if traffic is None else 1))
    else:
        plan = planner.within(steps)
    schedule = planner.schedule(plan, chunks)
    return TimedResult(schedule, plan.fluid, plan.bound, round(perf_counter() - started, 6))


@dataclass(frozen=True, eq=False)
class _Plan:
    """Routes over the arcs of all steps."""

    steps: int
    routes: Routes
    durations: tuple[Fraction, ...]
    bound: Fraction

    @property
    def fluid(self) -> Fraction:
        return sum(self.durations, Fraction(0))


class _Planner:
    """Schedules of one all-to-all with any number of steps."""

    def __init__(self, topology: Topology, demand: Indices, translations: Translations) -> None:
        self.topology, self.demand, self.translations = topology, demand, translations

    def best(self, latency: float, seconds: float) -> _Plan:
        """The number of steps for which latency and transfers (`seconds` a unit by GB/s) take least together."""
        steady = steady_problem(self.topology, self.demand, self.translations)
        floor = seconds * float(proved_bound(steady, solve_flows(steady).price))
        best = self.within(self.fewest_steps())
        while True:
            least = latency * best.steps + seconds * float(best.fluid)
            if latency * (best.steps + 1) + floor * (1 + WORTHWHILE) >= least:
                return best
            plan = self.within(best.steps + 1)
            if latency * plan.steps + seconds * float(plan.fluid) >= least - WORTHWHILE * floor:
                return best
            best = plan

    def within(self, steps: int) -> _Plan:
        """The best flow of so many steps. Raises PlansError where they are too few."""
        if steps < self.fewest_steps():
            raise PlansError(
                f"{steps} steps are too few for {self.topology.name}, whose farthest ranks are "
                f"{self.fewest_steps()} hops apart; allow at least so many"
            )
        problem = timed_problem(self.topology, self.demand, self.translations, steps)
        flows = solve_flows(problem)
        found = routes_of_flow(problem, flows.flow)
        elements = timed_elements(self.translations, steps)
        spread = joined(list(everywhere(timed_ends(self.topology, steps), found, elements)))
        routes = replace(spread, pair=spread.pair % len(self.topology.nodes))
        return _Plan(steps, routes, self.durations(routes, steps), proved_bound(problem, flows.price))

    def fewest_steps(self) -> int:
        """Hops from rank to rank between the pair that is farthest apart; switches cost none."""
        hops = hops_between(self.topology, free_switches=True)
        return int(hops[:, : len(self.demand)][self.demand > 0].max())

    def durations(self, routes: Routes, steps: int) -> tuple[Fraction, ...]:
        """What the busiest link of each step needs, in units by GB/s."""
        links = len(self.topology.capacities)
        load = loads(routes, self.demand, links * steps + steps * len(self.topology.ranks))[: links * steps]
        capacity = tuple(self.topology.capacities.values())
        return tuple(slowest(part, capacity) / routes.denominator for part in np.split(load, steps))

    def schedule(self, plan: _Plan, chunks: int | None) -> TimedSchedule:
        """The plan in whole chunks, replayed."""
        chunks = default_chunks(plan.routes) if chunks is None else chunks
        bandwidth = bandwidths_of(self.topology)
        room = np.concatenate([bandwidth * max(float(each), SHORTEST) for each in plan.durations])
        held = np.full(plan.steps * len(self.topology.ranks), np.inf)
        routes = in_chunks(plan.routes, self.demand, np.concatenate([room, held]), chunks)
        transfers = transfers_of(self.topology, routes, plan.steps)
        durations = replay_steps(self.topology, self.demand, chunks, transfers, plan.steps)
        return TimedSchedule(self.topology, self.demand, chunks, transfers, durations)
