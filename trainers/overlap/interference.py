"""How fast an operation runs with a share of the device: measured, or as NanoFlow published it for an A100.

The share R of a compute operation is its speed beside another over its speed alone; the partner's share is 1 - R, and
P is the partner's speed over its speed alone (NanoFlow, arXiv 2408.12757, section 4.1.1).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from trainers.errors import OverlapError
from trainers.overlap.operations import Resource

Curve = Sequence[tuple[float, float]]
"""Points (R, P), both from 0 to 1, rising in R and never falling in P, up to (1, 1)."""


@dataclass(frozen=True)
class InterferenceTable:
    """R → P by resource, linear between points; a resource without a curve waits, and neither takes nor loses speed."""

    curves: Mapping[Resource, Curve]

    def __post_init__(self) -> None:
        for resource, curve in self.curves.items():
            _check(resource, curve)

    def competes(self, resource: Resource) -> bool:
        """Whether its operations take part of the device from others."""
        return resource in self.curves

    def speed(self, resource: Resource, share: float) -> float:
        """P of an operation with `share` of the device, 1 being its speed alone."""
        if resource not in self.curves:
            return 1.0
        curve = self.curves[resource]
        right = min(max(bisect_right(curve, share, key=lambda point: point[0]), 1), len(curve) - 1)
        (r0, p0), (r1, p1) = curve[right - 1], curve[right]
        return p0 + (p1 - p0) * (min(max(share, r0), r1) - r0) / (r1 - r0)


def _check(resource: Resource, curve: Curve) -> None:
    shares, speeds = zip(*curve, strict=True) if len(curve) > 1 else ((), ())
    rising = all(a < b for a, b in pairwise(shares)) and all(a <= b for a, b in pairwise(speeds))
    if not (rising and shares and (shares[0], *curve[-1]) == (0, 1, 1) and speeds[0] >= 0 < speeds[1]):
        raise OverlapError(
            f"The speeds of {resource} must go from share 0 to (1, 1) and never fall, not {list(curve)}; measure again."
        )


PUBLISHED = InterferenceTable(
    {
        Resource.COMPUTE: ((0, 0), (0.1, 0.1), (0.2, 0.2), (0.4, 0.4), (0.8, 0.8), (0.9, 0.9), (1, 1)),
        Resource.MEMORY: ((0, 0), (0.1, 0.2), (0.2, 0.3), (0.4, 0.8), (0.8, 0.85), (0.9, 0.95), (1, 1)),
        Resource.NETWORK: ((0, 0), (0.1, 0.3), (0.2, 0.5), (0.8, 0.9), (0.9, 1), (1, 1)),
    }
)
"""NanoFlow's table for an A100 as others quote it (unverified). The network's value at 0.4 is elided there: here it is
the straight line between its neighbours."""

WAITING = InterferenceTable({Resource.COMPUTE: ((0, 0), (1, 1)), Resource.MEMORY: ((0, 0), (1, 1))})
"""Compute and memory operations share cores and gain nothing by it; the network, the host and the disk only wait."""
