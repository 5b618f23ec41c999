"""Stage II: which share of the device each operation takes, its order being given (NanoFlow, section 4.1.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from trainers.overlap.operations import Resource
from trainers.overlap.simulator import Device

GRID = tuple(tenth / 10 for tenth in range(1, 10))
COARSE_GRID = GRID[1:6:2]


def uniform(device: Device, by_resource: dict[Resource, float]) -> dict[str, float]:
    """The share of each operation by its resource; 1 for those not named."""
    return {each.name: by_resource.get(each.resource, 1.0) for each in device.graph.operations}


def uniform_choices(device: Device, grid: Sequence[float] = GRID) -> Iterator[dict[Resource, float]]:
    """All combinations of one share a resource that compete with compute and leave it something."""
    rivals = partners(device)
    for shares in product(grid, repeat=len(rivals)):
        if sum(shares) < 1:
            yield dict(zip(rivals, shares, strict=True))


def partners(device: Device) -> list[Resource]:
    """Resources other than compute that take part of the device from it."""
    return [each for each in device.graph.resources if each != Resource.COMPUTE and device.table.competes(each)]
