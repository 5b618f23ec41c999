"""Which server sends to which, and how much: the matrix of bytes between servers as stages of one partner each.

Every stage is a permutation of the servers and a weight. Weights add up to the largest sum of a row or column, exactly,
so the busiest server never waits (Birkhoff–von Neumann, in integers).
"""

from __future__ import annotations

from typing import NamedTuple

from comm_plans.all_to_all.birkhoff_kernels import as_published, by_ladder
from comm_plans.all_to_all.cluster import Bytes


class Stages(NamedTuple):
    """K stages of S servers: in stage k server i may send `weights[k]` bytes a network card to `partners[k, i]`."""

    partners: Bytes
    weights: Bytes


def birkhoff(quota: Bytes) -> Stages:
    """Decompose a square matrix of integers from 0 on, with sums below 2⁶²; the weights add up to its largest line sum.

    About 6·S stages; the weighted permutations add up to the matrix and a padding of zeros or more.
    """
    return Stages(*by_ladder(quota))


def published_birkhoff(quota: Bytes) -> Stages:
    """As `birkhoff`, in the order and with up to S² − 2S + 2 stages of the published scheduler."""
    return Stages(*as_published(quota))


def quantised_birkhoff(quota: Bytes, parts: int) -> Stages:
    """Fewer stages for a little more time: entries are rounded up to whole units of T / (parts · S) bytes."""
    total = int(max(quota.sum(0).max(), quota.sum(1).max()))
    unit = max(1, -(-total // (parts * len(quota))))
    partners, weights = by_ladder(-(-quota // unit))
    return Stages(partners, weights * unit)
