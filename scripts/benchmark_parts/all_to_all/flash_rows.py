"""Rows of the all-to-all benchmark about clusters: how fast stages and plans are found, how good the plans are.

`ratio` is the time of the best schedule with 16 chunks over what it cannot beat: the larger of the lower bound and what
the fabric inside the servers needs for it. The other columns are times over the lower bound; no latencies anywhere.
`faithful` moves the published bytes with a barrier after every stage, `as fluid` queues the same stages without
barriers, `johnson` in the best order; `unrelayed` bounds all that relays nothing, `servers spread out` counts only the
part between servers.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from benchmark_parts.all_to_all.cases import H200, Traffic, cases

from comm_plans.all_to_all.baselines import BASELINES, padded_seconds, server_spread_out_seconds
from comm_plans.all_to_all.birkhoff import birkhoff, published_birkhoff
from comm_plans.all_to_all.bounds import Fluid
from comm_plans.all_to_all.cluster import Cluster
from comm_plans.all_to_all.cluster_verifier import verify_schedule
from comm_plans.all_to_all.fair_sharing import fair_fan_out_seconds
from comm_plans.all_to_all.flash import pipelined, published
from comm_plans.all_to_all.on_cluster import load
from comm_plans.all_to_all.stage_times import johnson_order, queue_seconds, stage_seconds
from comm_plans.all_to_all.step_times import completion_seconds
from comm_plans.all_to_all.workloads import workload

Row = dict[str, Any]
SERVERS = (4, 8, 16, 32, 64, 128, 320)
PLANNED = (4, 40, 320)
CHUNKS = 16
MOST_SHARING = 32  # ranks for which fair sharing is worked out


def rows(quick: bool) -> tuple[list[Row], dict[str, Any]]:
    """All rows, and the summary."""
    load()
    found = [_birkhoff(servers, 5 if quick else 20) for servers in SERVERS]
    plans = [_plan(servers, 5) for servers in PLANNED[: 2 if quick else 3]]
    compared = [_compared(*case) for case in cases(quick)]
    summary = {
        "birkhoff_seconds_by_servers": {row["case"]: median(row["seconds"]) for row in found},
        "birkhoff_stages_by_servers": {row["case"]: row["stages"] for row in found},
        "plan_seconds_by_cluster": {row["case"]: median(row["seconds"]) for row in plans},
        "fluid_ratio_by_case": {row["case"]: row["ratio"] for row in compared},
        "faithful_over_best_by_case": {row["case"]: row["faithful"] / row["best"] for row in compared},
    }
    return found + plans + compared, summary


def _birkhoff(servers: int, repeats: int) -> Row:
    quota = np.random.default_rng(servers).integers(0, 2**27, (servers, servers))
    np.fill_diagonal(quota, 0)
    birkhoff(quota)
    seconds, stages = _timed(lambda: birkhoff(quota), repeats if servers > 64 else 10 * repeats)
    total = max(quota.sum(0).max(), quota.sum(1).max())
    assert stages.weights.sum() == total, "the weights must add up exactly"
    return {"what": "birkhoff", "case": str(servers), "seconds": seconds, "stages": len(stages.weights)}


def _plan(servers: int, repeats: int) -> Row:
    """A whole plan with byte ranges for 8 GPUs a server, with the latencies of a real cluster."""
    there, traffic = Cluster((8,) * servers, *H200), workload("random", servers, 8)
    pipelined(there, traffic)
    seconds, schedule = _timed(lambda: pipelined(there, traffic), 10 * repeats if servers < 16 else repeats)
    return {"what": "plan", "case": f"{servers}x8", "seconds": seconds, "stages": schedule.stages}


def _compared(name: str, there: Cluster, traffic: Traffic) -> Row:
    fluid = Fluid(there, there.tiles(traffic))
    bound = fluid.lower_bound_seconds
    schedule = pipelined(there, traffic, CHUNKS)
    verify_schedule(schedule, traffic)
    best = completion_seconds(there, schedule.steps())
    queue, johnson = _as_fluid(fluid)
    others = {key: completion_seconds(there, steps(there, traffic)) / bound for key, steps in BASELINES.items()}
    if there.ranks <= MOST_SHARING:
        others["fan-out"] = fair_fan_out_seconds(there, traffic) / bound
    others["servers spread out"] = server_spread_out_seconds(there, traffic) / bound
    others["padded"] = padded_seconds(there, traffic) / bound
    return {
        "what": "schedule",
        "case": name,
        "stages": schedule.stages,
        "ratio": best / max(bound, fluid.fabric_total_seconds),
        "best": best / bound,
        "faithful": completion_seconds(there, published(there, traffic).steps()) / bound,
        "as fluid": queue / bound,
        "johnson": johnson / bound,
        "unrelayed": fluid.direct_seconds / bound,
        **others,
    }


def _as_fluid(fluid: Fluid) -> tuple[float, float]:
    """The published stages as a queue, in the order found and in Johnson's."""
    sending, handing = stage_seconds(fluid, published_birkhoff(fluid.quota))
    order = johnson_order(sending, handing)
    inside = fluid.fabric_seconds(fluid.balance), fluid.fabric_seconds(fluid.local)
    return queue_seconds(sending, handing, *inside), queue_seconds(sending[order], handing[order], *inside)


def _timed(work: Callable[[], Any], repeats: int) -> tuple[list[float], Any]:
    samples = []
    for _ in range(repeats):
        started = perf_counter()
        outcome = work()
        samples.append(perf_counter() - started)
    return samples, outcome
