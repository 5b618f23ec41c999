"""Rows of what was measured in the lab: collectives, training steps, and a torus of which two links become slow."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import torch._dynamo  # noqa: F401 - which DDP loads: so it is loaded once and not on every rank
from benchmark_parts.live_plans import on_ranks
from benchmark_parts.live_plans.cases import (
    CASES,
    COLLECTIVES,
    MIB,
    SLOW_LINKS,
    SLOW_RATE,
    Case,
    Row,
    bound_seconds,
    degraded,
    payload_seconds,
    plan_of,
    ring_plan,
)
from lab.faults import degrade
from lab.launcher import run_ranks
from lab.life import standing
from lab.rates import parse_rate

from comm_plans.lab_state import LabState
from comm_plans.live import LivePlans, plans_for
from comm_plans.topology import Topology

PATIENCE = 1800.0  # seconds for all samples of a case


def rows(sizes: tuple[int, ...], repeats: int) -> list[Row]:
    """Measure every case; sizes in bytes. Raises PlansError where there can be no lab."""
    return [row for case in CASES for row in _case(case, sizes, repeats)]


def row(
    case: str,
    what: str,
    way: str,
    size: int,
    seconds: Sequence[float],
    bound: float | None = None,
    own_bound: float | None = None,
) -> Row:
    """One line of the table; `seconds` are samples of the slowest rank.

    bound: seconds that no plan can beat; own_bound: those that this plan promises, where it is not the best one.
    """
    return {
        "case": case,
        "what": what,
        "way": way,
        "mib": size / MIB,
        "seconds": list(seconds),
        "bound_seconds": bound,
        "own_bound_seconds": own_bound,
        "of_bound": None if bound is None else bound / median(seconds),
        "load": round(os.getloadavg()[0], 1),
    }


def collective_rows(
    state: LabState,
    case: str,
    ways: Mapping[str, LivePlans],
    collectives: tuple[str, ...],
    sizes: tuple[int, ...],
    repeats: int,
) -> list[Row]:
    """Time `collectives` in each way and by gloo; the bound is that of the first way's plans."""
    samples = run_ranks(state, on_ranks.time_collectives, ways, collectives, sizes, repeats, seconds=PATIENCE)
    bounding = ways[next(iter(ways))]
    found = []
    for key in samples[0]:
        what, way, size = key
        own = payload_seconds(plan_of(ways[way], what).algbw, size) if way in ways else None
        bound = bound_seconds(plan_of(bounding, what), size)
        found.append(row(case, what, way, size, _slowest(samples, key), bound, own))
    return found


def live_plans(topology: Topology) -> LivePlans:
    """What DDP and the collectives measured need: the plans without a root, and those of broadcast."""
    plans = plans_for(topology, len(topology.ranks)).plans
    return LivePlans(tuple(plan for plan in plans if plan.root is None or plan.collective == "broadcast"))


def _case(case: Case, sizes: tuple[int, ...], repeats: int) -> list[Row]:
    with standing(case.file) as state:
        plans = live_plans(case.topology)
        ways = {"streams": plans, "p2p": plans}
        if case.ring:
            ways["streams ring"] = ring_plan(case.topology, case.ring)
        found = collective_rows(state, case.name, ways, COLLECTIVES, sizes, repeats)
        found += _steps(state, case, plans, repeats)
        return found + (_degraded(state, case, plans, sizes[:1], repeats) if case.ring else [])


def _steps(state: LabState, case: Case, plans: LivePlans, repeats: int) -> list[Row]:
    samples = run_ranks(state, on_ranks.time_steps, {"streams": plans, "p2p": plans}, repeats, seconds=PATIENCE)
    size = sum(parameter.nbytes for parameter in on_ranks.mlp().parameters())
    bound = bound_seconds(plan_of(plans, "all_reduce"), size)
    return [row(case.name, "ddp", way, size, _slowest(samples, way), bound) for way in samples[0]]


def _degraded(state: LabState, case: Case, stale: LivePlans, sizes: tuple[int, ...], repeats: int) -> list[Row]:
    for link in SLOW_LINKS:
        state = degrade(state, link, parse_rate(SLOW_RATE))
    ways = {"streams replanned": live_plans(degraded(case.topology)), "streams stale": stale}
    return collective_rows(state, f"{case.name}_degraded", ways, ("all_reduce",), sizes, repeats)


def _slowest(samples: list[dict[Any, list[float]]], key: Any) -> list[float]:
    """The slowest rank's seconds of each sample."""
    return [max(each) for each in zip(*(rank[key] for rank in samples), strict=True)]
