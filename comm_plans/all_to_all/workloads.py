"""Traffic to try schedules on: even, random, Zipf's law, and the worst that skew inside servers can do.

Every matrix follows from the numbers of servers and GPUs alone.
"""

from __future__ import annotations

import numpy as np

from comm_plans.all_to_all.cluster import Bytes
from comm_plans.errors import TrafficError

UNIT = 2**20  # bytes a pair of GPUs on average, for the first three
ADVERSARIES = ("adv_gpu0", "adv_incast", "adv_outcast")
KINDS = ("balanced", "random", "zipf0.8", "zipf1.2", *ADVERSARIES)


def workload(kind: str, servers: int, gpus: int) -> Bytes:
    """The matrix called `kind`, one of KINDS.

    adv_gpu0: all traffic between servers runs from first GPU to first GPU; adv_incast: one GPU receives from all;
    adv_outcast: one GPU sends to all. Raises TrafficError for an unknown kind.
    """
    if kind not in KINDS:
        raise TrafficError(f"{kind[:40]!r} is no kind of traffic; the kinds are {', '.join(KINDS)}")
    ranks = servers * gpus
    generator = np.random.default_rng(1000 * servers + gpus)
    if kind == "balanced":
        traffic = np.full((ranks, ranks), UNIT, np.int64)
    elif kind == "random":
        traffic = generator.integers(0, 2 * UNIT + 1, (ranks, ranks), np.int64)
    elif kind.startswith("zipf"):
        traffic = _zipf(float(kind[4:]), ranks, generator)
    else:
        traffic = _adversary(kind, servers, gpus)
    np.fill_diagonal(traffic, 0)
    return traffic


def _zipf(exponent: float, ranks: int, generator: np.random.Generator) -> Bytes:
    """Pairs weigh 1, 2^−s, 3^−s, …, dealt out at random."""
    pairs = ranks * ranks
    weights = np.empty(pairs)
    weights[generator.permutation(pairs)] = np.arange(1, pairs + 1, dtype=np.float64) ** -exponent
    traffic: Bytes = np.floor(weights / weights.sum() * pairs * UNIT).astype(np.int64).reshape(ranks, ranks)
    return traffic


def _adversary(kind: str, servers: int, gpus: int) -> Bytes:
    ranks = servers * gpus
    traffic = np.zeros((ranks, ranks), np.int64)
    if kind == "adv_gpu0":
        first = np.arange(servers) * gpus
        traffic[first, np.roll(first, -1)] = gpus * UNIT
    elif kind == "adv_incast":
        traffic[:, 0] = UNIT
    else:
        traffic[0] = UNIT
    return traffic
