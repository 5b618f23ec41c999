"""A plan that was made for one network, for another that is alike: renumbered, and with honest figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from comm_plans.canonical import mapping_between
from comm_plans.noise import within_noise
from comm_plans.plan import Plan
from comm_plans.topology import Topology
from comm_plans.verifier import appraise


def marks_of(topology: Topology, root: int | None, shards: Sequence[Fraction] | None) -> list[str]:
    """What sets each rank apart in a question: being the root, and its part of the buffer."""
    parts = [""] * len(topology.ranks) if shards is None else [str(shard / sum(shards)) for shard in shards]
    return [f"{part} root" if rank == root else part for rank, part in enumerate(parts)]


def moved_to(topology: Topology, plan: Plan, marks: Sequence[str], plan_marks: Sequence[str]) -> Plan | None:
    """The plan in the numbering of `topology`, or None where that is another network than the plan's.

    Where bandwidths differ by noise, `algbw` is what the plan reaches on `topology`; `optimum` is then an upper bound.
    """
    mapping = mapping_between(plan.topology, topology, plan_marks, marks)
    if mapping is None:
        return None
    pairs = [
        (bandwidth, topology.capacities[mapping[source], mapping[target]])
        for (source, target), bandwidth in plan.topology.capacities.items()
    ]
    moved = plan.relabelled(topology, mapping)
    if all(before == now for before, now in pairs):
        return moved
    if not all(within_noise(before, now) for before, now in pairs):
        return None
    # Bandwidth scales with the links and never falls when one gets faster, which bounds what the noise can add.
    faster = max(now / before for before, now in pairs)
    algbw, bounds = appraise(moved.to_document())
    optimum = min([plan.optimum * faster, *bounds])
    return replace(moved, algbw=algbw, optimum=optimum, optimal=algbw == optimum)
