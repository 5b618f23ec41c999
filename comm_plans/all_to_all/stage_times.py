"""How long published stages take as fluids: a queue without barriers, or a barrier after every stage; and their order.

Stage k keeps the cards busy for p[k] seconds, its redistribution the fabric for q[k]. Source: arXiv 2505.09764; the
order is Johnson's rule for two machines (Naval Research Logistics Quarterly 1, 1954).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from comm_plans.all_to_all.birkhoff import Stages
from comm_plans.all_to_all.bounds import Fluid

Seconds = NDArray[np.float64]


def stage_seconds(fluid: Fluid, stages: Stages) -> tuple[Seconds, Seconds]:
    """p and q of every stage, whose bytes have each destination in proportion to the pair of servers as a whole."""
    cluster, servers = fluid.cluster, np.arange(fluid.cluster.servers)
    between = np.maximum(fluid.between, 1)
    parts = fluid.incoming / between[:, :, None]
    handed = np.maximum(1 - parts, (cluster.gpus - 1) * parts).max(2)
    left = fluid.between / cluster.gpus
    sending, handing = np.zeros(len(stages.weights)), np.zeros(len(stages.weights))
    for k, (partner, weight) in enumerate(zip(stages.partners, stages.weights, strict=True)):
        sent = np.minimum(left[servers, partner], weight)
        left[servers, partner] -= sent
        sending[k] = weight / cluster.nic_bytes
        handing[k] = (sent * handed[servers, partner]).max() / cluster.intra_bytes
    return sending, handing


def queue_seconds(sending: Seconds, handing: Seconds, balance: float, local: float) -> float:
    """Stages queue for the cards, then for the fabric; local traffic fills up the fabric's idle time."""
    cards = fabric = 0.0
    for p, q in zip(sending, handing, strict=True):
        cards += p
        fabric = max(fabric, cards) + q
    return float(balance + max(fabric, handing.sum() + local))


def barrier_seconds(sending: Seconds, handing: Seconds, balance: float, local: float) -> float:
    """All ranks wait for one another after every stage; local traffic goes first."""
    slots = np.maximum(np.append(sending, 0.0), np.insert(handing, 0, 0.0))
    return local + balance + float(slots.sum())


def johnson_order(sending: Seconds, handing: Seconds) -> NDArray[np.intp]:
    """The order that ends a queue first: those that send for a shorter time, shortest first; then the others by
    falling redistribution."""
    first = sending < handing
    return np.lexsort((np.where(first, sending, -handing), ~first))
