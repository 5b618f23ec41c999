"""The face of the library: a network and a collective in, a verified plan out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from time import perf_counter

from comm_plans.errors import PlansError
from comm_plans.forest.checks import check_connected, check_ranks
from comm_plans.forest.collectives import forest
from comm_plans.forest.outcome import Outcome, reached_algbw
from comm_plans.plan import COLLECTIVES, Plan
from comm_plans.topology import Topology
from comm_plans.verifier import verify

METHODS = ("forest", "breadth_first", "expansion")


def solve(
    topology: Topology,
    collective: str,
    *,
    method: str = "forest",
    trees_per_rank: int | None = None,
    root: int | None = None,
    shards: Sequence[Fraction] | None = None,
    tolerance: Fraction = Fraction(0),
    trim: bool = False,
    symmetric: bool = True,
    progress: Callable[[str], None] | None = None,
) -> Plan:
    """A plan of `collective` on `topology` that reaches the network's optimum, verified before it is returned.

    method: `forest`; or, for networks without switches, plans in synchronous steps that need not reach the optimum:
    `breadth_first`, which takes the fewest steps, and `expansion`, which follows the wiring that the network's name is.
    trees_per_rank: exactly so many trees for each rank, the best there are. root: rank of a broadcast or reduce.
    shards: what each rank contributes to an all_gather or keeps of a reduce_scatter, in any unit; equal by default.
    tolerance: fewer trees are taken once they come within this relative distance of the optimum; 0 is exact.
    trim: where a switch sends more than it receives, use less of its links instead of refusing.
    symmetric: use that regular networks look alike from every rank (much faster, and shallower trees).
    progress: called with the name of each step as it starts.
    Raises a PlansError (one sentence) where the network cannot carry the collective or an argument makes no sense.
    """
    report = progress or (lambda step: None)
    _check_arguments(topology, collective, method, trees_per_rank, root, tolerance)
    _check_shards(topology, collective, shards)
    check_ranks(topology)
    for start in _starts(root, shards):
        check_connected(topology, collective, start)
    started = perf_counter()
    if method == "forest":
        outcome = forest(
            topology,
            collective,
            trees_per_rank,
            tolerance,
            root=root,
            shards=shards,
            trim=trim,
            symmetric=symmetric,
        )
        plan = _plan(topology, collective, method, root, outcome)
    else:
        plan = _stepped(topology, collective, method, trees_per_rank, shards)
    plan = replace(plan, solve_seconds=round(perf_counter() - started, 6))
    report("verify")
    verify(plan.to_document())
    return plan


def _starts(root: int | None, shards: Sequence[Fraction] | None) -> list[int | None]:
    """Ranks whose data must get around, None for all of them."""
    return [root] if shards is None else [rank for rank, shard in enumerate(shards) if shard]


def _stepped(
    topology: Topology, collective: str, method: str, trees_per_rank: int | None, shards: Sequence[Fraction] | None
) -> Plan:
    """A plan in synchronous steps, which has equal shards and as many trees as its divisions need."""
    from comm_plans.direct_connect.plans import direct_plan

    if trees_per_rank is not None or shards is not None:
        raise PlansError(f"{method} takes neither trees per rank nor shards; leave them out or take the method forest")
    return direct_plan(topology, collective, method)


def _plan(topology: Topology, collective: str, method: str, root: int | None, outcome: Outcome) -> Plan:
    algbw = reached_algbw(topology.capacities, outcome.trees)
    return Plan(
        collective=collective,
        topology=topology,
        trees=outcome.trees,
        shards=outcome.shards,
        algbw=algbw,
        optimal=algbw == outcome.optimum,
        optimum=outcome.optimum,
        bottleneck=tuple(topology.nodes[node] for node in outcome.cut),
        trees_per_rank=outcome.trees_per_rank,
        method=method,
        root=root,
    )


def _check_arguments(
    topology: Topology,
    collective: str,
    method: str,
    trees_per_rank: int | None,
    root: int | None,
    tolerance: Fraction,
) -> None:
    rooted = collective in ("broadcast", "reduce")
    if collective not in COLLECTIVES:
        raise PlansError(f"the collective {collective!r} is none of {', '.join(COLLECTIVES)}")
    if method not in METHODS:
        raise PlansError(f"the method {method!r} is none of {', '.join(METHODS)}")
    if trees_per_rank is not None and trees_per_rank < 1:
        raise PlansError(f"{trees_per_rank} trees per rank cannot carry anything; ask for one or more")
    if not 0 <= tolerance < 1:
        raise PlansError(f"the tolerance {tolerance} is negative or all of the optimum; 0 asks for the exact optimum")
    if rooted and (root is None or not 0 <= root < len(topology.ranks)):
        raise PlansError(f"{collective} needs a root from 0 to {len(topology.ranks) - 1}, not {root}")
    if not rooted and root is not None:
        raise PlansError(f"{collective} has no root; leave it out")


def _check_shards(topology: Topology, collective: str, shards: Sequence[Fraction] | None) -> None:
    if shards is not None and collective not in ("all_gather", "reduce_scatter"):
        raise PlansError(f"{collective} has no shards; leave them out")
    if shards is not None and len(shards) != len(topology.ranks):
        raise PlansError(f"{len(shards)} shards for {len(topology.ranks)} ranks; give one for each rank in rank order")
