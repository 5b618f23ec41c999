"""The face of FLASH: a cluster and its traffic in, a verified schedule and its time out."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from comm_plans.all_to_all.bounds import Fluid
from comm_plans.all_to_all.cluster import Bytes, Cluster
from comm_plans.all_to_all.cluster_verifier import verify_schedule
from comm_plans.all_to_all.flash import pipelined, published
from comm_plans.all_to_all.schedule import Schedule
from comm_plans.all_to_all.step_times import completion_seconds
from comm_plans.errors import PlansError

MODES = {"best": pipelined, "faithful": published}


@dataclass(frozen=True)
class ClusterResult:
    """A schedule that passed the verifier. Times in seconds; `lower_bound_seconds` holds for every schedule, without
    latencies; `plan_seconds` is what finding the schedule took."""

    schedule: Schedule
    mode: str
    lower_bound_seconds: float
    completion_seconds: float
    plan_seconds: float
    verified: bool = True

    @property
    def stages(self) -> int:
        """Number of different pairings of the servers."""
        return self.schedule.stages

    def summary(self) -> dict[str, Any]:
        """What `comm-plan all-to-all --json` prints."""
        cluster = self.schedule.cluster
        return {
            "mode": self.mode,
            "servers": cluster.servers,
            "ranks": cluster.ranks,
            "lower_bound_seconds": self.lower_bound_seconds,
            "completion_seconds": self.completion_seconds,
            "stages": self.stages,
            "steps": len(self.schedule),
            "plan_seconds": self.plan_seconds,
            "verified": self.verified,
        }


def cluster_all_to_all(cluster: Cluster, traffic: Bytes, mode: str = "best") -> ClusterResult:
    """Schedule `traffic` (int64, bytes from rank to rank; `checked_traffic` for what comes from outside).

    mode: `best`, or `faithful`, the published one. Raises PlansError for any other, or for a matrix that does not fit.
    """
    if mode not in MODES:
        raise PlansError(f"{mode[:40]!r} is no mode; the modes are {', '.join(MODES)}")
    started = perf_counter()
    schedule = MODES[mode](cluster, traffic)
    plan_seconds = perf_counter() - started
    verify_schedule(schedule, traffic)
    return ClusterResult(
        schedule,
        mode,
        Fluid(cluster, cluster.tiles(traffic)).lower_bound_seconds,
        completion_seconds(cluster, schedule.steps()),
        plan_seconds,
    )


def load() -> None:
    """Compile what schedules need, or load it from the cache on disk."""
    for mode in MODES:
        cluster_all_to_all(Cluster((2, 2), 1.0, 1.0), np.ones((4, 4), np.int64), mode)
