"""Groups of the backend `planned` in tests: on loopback, everything by plan unless a test says otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

from live_networks import two_boxes, unequal_star
from torch import distributed as dist

from comm_plans.fabrics import fabric
from comm_plans.live import LivePlans, plans_for
from comm_plans.runtime import PlannedGroup, PlannedOptions
from comm_plans.topology import Topology

NETWORKS = {2: fabric("path:ranks=2"), 3: fabric("ring:ranks=3"), 4: unequal_star(), 8: two_boxes()}
EVERYTHING = PlannedOptions(threshold_bytes=0, pace=False, deadline=20, strict=True)


def on(topology: Topology, transport: str = "streams") -> PlannedOptions:
    """Everything by plan on a network."""
    return replace(EVERYTHING, topology=topology, transport=transport)


@contextmanager
def planned(
    store: dist.Store, rank: int, world: int, options: PlannedOptions | None, prefix: str = "planned"
) -> Iterator[PlannedGroup]:
    """The default group, made with these options."""
    dist.init_process_group(
        "planned",
        store=dist.PrefixStore(prefix, store),
        rank=rank,
        world_size=world,
        timeout=timedelta(seconds=50),
        pg_options=options,
    )
    group = dist.group.WORLD
    assert isinstance(group, PlannedGroup)
    try:
        yield group
    finally:
        dist.destroy_process_group()


def slow_plans() -> LivePlans:
    """Plans on which 10 MB take about a second where they are paced."""
    return plans_for(two_boxes(), 8)
