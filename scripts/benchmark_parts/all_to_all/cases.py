"""Traffic on clusters to compare schedules on: even, random, skewed, the worst, and loads of mixtures of experts.

The expert loads (tokens from rank to rank) were made again from figures that users gave in public reports; the names
say which. A token is a hidden state of 7168 numbers in bfloat16.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from comm_plans.all_to_all.cluster import Cluster
from comm_plans.all_to_all.workloads import workload

Traffic = NDArray[np.int64]

TOKEN_BYTES = 2 * 7168
H200 = 450.0, 50.0  # GB/s inside a server and between servers
MI300X = 448.0, 12.5
LOADS = {  # servers
    "deepspeed8213_math_last_16ranks": 2,
    "deepspeed8213_code_last_16ranks": 2,
    "deepspeed8213_code_worst_16ranks": 2,
    "sglang5524_one_rank_of_16experts_as_16ranks": 2,
    "sglang37741_before_16ranks": 2,
    "deepep427_heavy_16ranks": 2,
    "deepep208_ragged_32ranks": 4,
    "W1_like": 2,
    "W4_like": 2,
    "W6_like_step0": 2,
    "W7_like_burst": 2,
}
SMALL = ((4, "balanced"), (4, "random"), (4, "zipf0.8"), (8, "random"), (8, "zipf0.8"), (8, "zipf1.2"), (8, "adv_gpu0"))
LARGE = ((16, "zipf1.2"), (40, "balanced"), (40, "random"), (40, "zipf0.8"), (40, "zipf1.2"), (40, "adv_gpu0"))


def cases(quick: bool) -> Iterator[tuple[str, Cluster, Traffic]]:
    """Name, cluster without latencies, traffic."""
    for servers, kind in SMALL if quick else SMALL + LARGE:
        for name, bandwidths in (("H200", H200), ("MI300X", MI300X)):
            yield f"{servers}x8 {kind} {name}", cluster(servers, 8, *bandwidths), workload(kind, servers, 8)
    tokens = json.loads((Path(__file__).parent / "moe_matrices.json").read_text())
    for load, servers in LOADS.items():
        traffic = np.array(tokens[load], np.int64) * TOKEN_BYTES
        gpus = len(traffic) // servers
        yield f"{servers}x{gpus} {load} H200", cluster(servers, gpus, *H200), traffic


def cluster(servers: int, gpus: int, intra: float, nic: float) -> Cluster:
    """Servers joined by a switch inside, without latencies."""
    return Cluster((gpus,) * servers, intra, nic, 0.0, 0.0)
