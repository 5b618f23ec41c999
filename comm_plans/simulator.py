"""How long a plan takes on its network: the fluid bound, the α–β time of pipelined chunks, the load of every link.

The fluid time is exact: bytes over the plan's algbw. The α–β time is that of synchronous steps: each tree is cut into
P chunks, chunk c makes a hop of level d in step c + d, and a step lasts as long as its slowest link plus its slowest
hop's latency. A hop between ranks costs the latencies stated on its links added up, or `latency` where none is stated.
With every step full this is T(P) = (P + D − 1)(α + bandwidth time / P); steps that fill and drain the pipeline carry
less, so the simulated time lies at or below it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from comm_plans.errors import PlansError
from comm_plans.forest.pipeline import best_chunks, step_loads, windows
from comm_plans.hops import Hops, unroll
from comm_plans.plan import Plan

DEFAULT_LATENCY = 5e-6  # seconds a rank-to-rank hop, an assumption: about that of one NCCL send over a network card
GIGA = 10**9


@dataclass(frozen=True)
class LinkLoad:
    """What one link carries: bytes (exact) and the part of the completion time in which it is busy (0 to 1)."""

    source: str
    target: str
    bytes: Fraction
    utilisation: float


@dataclass(frozen=True)
class Simulation:
    """Outcome of one collective. Times in seconds, algbw in GB/s; `fluid_seconds` is exact and knows no latency."""

    size_bytes: int
    seconds: float
    fluid_seconds: Fraction
    algbw: float
    chunks: int
    steps: int
    latency: float
    busiest: LinkLoad
    links: tuple[LinkLoad, ...]


def simulate(plan: Plan, size_bytes: int, *, latency: float = DEFAULT_LATENCY, chunks: int | None = None) -> Simulation:
    """Simulate `plan` on a full buffer of `size_bytes`.

    chunks: pieces that each tree is cut into; by default the best ones of T(P) (never less than a byte each). A plan
    that brings its own steps runs as it is. latency: seconds a hop costs where the topology states none.
    Raises PlansError for a size below one byte, fewer than one chunk, or a negative latency.
    """
    _check(size_bytes, latency, chunks)
    hops = unroll(plan)
    fluid = Fraction(size_bytes, GIGA) / plan.algbw
    if any(tree.steps for tree in plan.trees):
        chunks = 1
    elif chunks is None:
        smallest = min(tree.share for tree in plan.trees) * size_bytes
        slowest = float(hops.latency_by_level(latency).max())
        chunks = best_chunks(hops.levels, float(fluid), slowest, most=max(1, int(smallest)))
    seconds = _seconds(hops, size_bytes, latency, chunks)
    links = _link_loads(plan, hops, size_bytes, seconds)
    return Simulation(
        size_bytes=size_bytes,
        seconds=seconds,
        fluid_seconds=fluid,
        algbw=size_bytes / GIGA / seconds,
        chunks=chunks,
        steps=hops.levels + chunks - 1,
        latency=latency,
        busiest=max(links, key=lambda link: link.utilisation),
        links=links,
    )


def _check(size_bytes: int, latency: float, chunks: int | None) -> None:
    if size_bytes < 1:
        raise PlansError(f"the buffer has {size_bytes} bytes; give a size of at least one byte")
    if not 0 <= latency < float("inf"):
        raise PlansError(f"the latency of a hop is {latency} s; give a finite one, zero or more")
    if chunks is not None and chunks < 1:
        raise PlansError(f"a tree cannot be cut into {chunks} chunks; give one or more")


def _seconds(hops: Hops, size_bytes: int, latency: float, chunks: int) -> float:
    """Sum over the steps of the slowest link's time and the slowest hop's latency."""
    seconds_per_unit = np.array([float(hops.unit / each) for each in hops.bandwidth]) * size_bytes / GIGA / chunks
    moving = sum(
        count * float((loads.astype(float) * seconds_per_unit).max()) for count, loads in step_loads(hops, chunks)
    )
    slowest_hop = hops.latency_by_level(latency)
    waiting = sum(count * float(slowest_hop[first:end].max()) for count, first, end in windows(hops.levels, chunks))
    return moving + waiting


def _link_loads(plan: Plan, hops: Hops, size_bytes: int, seconds: float) -> tuple[LinkLoad, ...]:
    names = plan.topology.nodes
    return tuple(
        LinkLoad(names[source], names[target], carried, float(carried / bandwidth) / GIGA / seconds)
        for (source, target), bandwidth, carried in zip(
            hops.links, hops.bandwidth, (int(units) * hops.unit * size_bytes for units in hops.loads()), strict=True
        )
    )
