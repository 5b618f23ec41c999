"""How long a schedule takes when its steps run one after another: α–β, the slowest resource of every step.

A message costs a latency at its sender and at its receiver. Cards and a switch carry the messages of a GPU one after
another; the links of a mesh work side by side.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from comm_plans.all_to_all.cluster import Cluster
from comm_plans.all_to_all.schedule import Transfers


def completion_seconds(cluster: Cluster, steps: Iterable[Transfers]) -> float:
    """Seconds of all steps together."""
    return sum(step_seconds(cluster, step) for step in steps)


def step_seconds(cluster: Cluster, step: Transfers) -> float:
    """Seconds of one step: those of its busiest card, GPU or link."""
    pairs, place = np.unique(step.source.astype(np.int64) * cluster.ranks + step.target, return_inverse=True)
    size = np.bincount(place, weights=step.high - step.low, minlength=len(pairs))
    source, target = np.divmod(pairs, cluster.ranks)
    out = cluster.server_of[source] != cluster.server_of[target]
    cards = size[out] / cluster.nic_bytes + cluster.nic_latency
    if cluster.intra_fabric == "mesh":
        inside = float((size[~out] / cluster.link_bytes + cluster.intra_latency).max(initial=0.0))
    else:
        messages = size[~out] / cluster.intra_bytes + cluster.intra_latency
        inside = _busiest(source[~out], target[~out], messages)
    return max(_busiest(source[out], target[out], cards), inside)


def _busiest(source: NDArray[Any], target: NDArray[Any], seconds: NDArray[np.float64]) -> float:
    """The busiest sender or receiver."""
    if not len(seconds):
        return 0.0
    return float(max(np.bincount(source, weights=seconds).max(), np.bincount(target, weights=seconds).max()))
