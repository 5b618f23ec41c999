"""Rows without a lab: on a network faster than the processor, the group's own rule has to leave the work to gloo."""

from __future__ import annotations

from datetime import timedelta
from multiprocessing import get_context

import torch
from benchmark_parts.live_plans.cases import MIB, Row
from benchmark_parts.live_plans.lab_rows import row
from benchmark_parts.live_plans.on_ranks import timed
from torch import distributed as dist

from comm_plans.fabrics import fabric
from comm_plans.live import LivePlans, plans_for
from comm_plans.runtime import PlannedOptions

RANKS = 4
SIZE = 16 * MIB
NETWORK = "full_mesh:ranks=4,bandwidth=10"  # GB/s


def rows(repeats: int) -> list[Row]:
    """all_reduce by a planned group and by gloo."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    plans = plans_for(fabric(NETWORK), RANKS)
    tasks = [(rank, store.port, plans, repeats) for rank in range(RANKS)]
    with get_context("fork").Pool(RANKS) as pool:
        samples = pool.starmap(_seconds, tasks, chunksize=1)
    return [
        row(
            "loopback",
            "all_reduce",
            way,
            SIZE,
            [max(each) for each in zip(*(rank[way] for rank in samples), strict=True)],
            None,
        )
        for way in samples[0]
    ]


def _seconds(rank: int, port: int, plans: LivePlans, repeats: int) -> dict[str, list[float]]:
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port)
    options = PlannedOptions(plans=plans)
    limit = timedelta(seconds=120)
    dist.init_process_group("planned", store=store, rank=rank, world_size=RANKS, pg_options=options, timeout=limit)
    ways = {"rule": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
    samples: dict[str, list[float]] = {way: [] for way in ways}
    for repeat in range(repeats + 1):
        for way, group in ways.items():
            seconds = timed("all_reduce", group, SIZE)
            if repeat:
                samples[way].append(seconds)
    dist.destroy_process_group()
    return samples
