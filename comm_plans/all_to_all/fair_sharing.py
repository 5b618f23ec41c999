"""How long a fan-out takes when all flows start at once and share cards and fabric max–min fairly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from comm_plans.all_to_all.cluster import Bytes, Cluster
from comm_plans.compiled import compiled

Amounts = NDArray[np.float64]

_DONE = 1e-9  # of its size, below which a flow has ended


def fair_fan_out_seconds(cluster: Cluster, traffic: Bytes) -> float:
    """Rates are worked out anew whenever a flow ends, so the effort grows with the fourth power of the ranks: 32 take a
    moment. The messages of a card or a switch also cost their latencies, one after another; incast losses are left out.
    """
    source, target = np.nonzero(traffic * ~np.eye(len(traffic), dtype=bool))
    out = cluster.server_of[source] != cluster.server_of[target]
    ranks = cluster.ranks
    kinds = np.repeat([cluster.nic_bytes, cluster.nic_bytes, cluster.intra_bytes, cluster.intra_bytes], ranks)
    sending, receiving = source + np.where(out, 0, 2 * ranks), target + np.where(out, ranks, 3 * ranks)
    if cluster.intra_fabric == "mesh":
        link = 4 * ranks + source * ranks + target
        sending, receiving = np.where(out, sending, link), np.where(out, receiving, link)
        kinds = np.concatenate((kinds, np.full(ranks * ranks, cluster.link_bytes)))
    sharing = max_min_seconds(traffic[source, target].astype(np.float64), sending, receiving, kinds)
    messages = np.maximum(np.bincount(sending, minlength=len(kinds)), np.bincount(receiving, minlength=len(kinds)))
    latency = np.where(np.arange(len(kinds)) < 2 * ranks, cluster.nic_latency, cluster.intra_latency)
    return float(sharing + (messages * latency).max())


@compiled
def max_min_seconds(sizes: Amounts, sending: Bytes, receiving: Bytes, capacity: Amounts) -> float:
    """Until all flows have ended; flow f of `sizes[f]` bytes uses the resources `sending[f]` and `receiving[f]`."""
    left = sizes.copy()
    seconds = 0.0
    while left.max() > 0 if len(left) else False:
        rate = _fair_rates(left, sending, receiving, capacity)
        span = np.inf
        for flow in range(len(left)):
            if left[flow] > 0:
                span = min(span, left[flow] / rate[flow])
        seconds += span
        for flow in range(len(left)):
            left[flow] -= rate[flow] * span
            if left[flow] <= _DONE * sizes[flow]:
                left[flow] = 0.0
    return seconds


@compiled
def _fair_rates(left: Amounts, sending: Bytes, receiving: Bytes, capacity: Amounts) -> Amounts:
    """The tightest resource gives each of its flows an equal share; so on with the others and what is left."""
    rate, room = np.zeros(len(left)), capacity.copy()
    users = np.zeros(len(capacity), np.int64)
    waiting = left > 0
    for flow in range(len(left)):
        if waiting[flow]:
            users[sending[flow]] += 1
            users[receiving[flow]] += sending[flow] != receiving[flow]
    while waiting.any():
        tightest, share = -1, np.inf
        for resource in range(len(capacity)):
            if users[resource] > 0 and room[resource] < share * users[resource]:
                tightest, share = resource, room[resource] / users[resource]
        for flow in range(len(left)):
            if waiting[flow] and (sending[flow] == tightest or receiving[flow] == tightest):
                waiting[flow] = False
                rate[flow] = share
                room[sending[flow]] -= share
                users[sending[flow]] -= 1
                if sending[flow] != receiving[flow]:
                    room[receiving[flow]] -= share
                    users[receiving[flow]] -= 1
    return rate
