"""A plan's own figures against what the replay found, and the named cut as proof that no plan is faster."""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Any

import numpy as np

from comm_plans.verifier.arrays import Flags, Network, need, number


def check_claims(document: dict[str, Any], network: Network, shards: list[Fraction], algbw: Fraction) -> bool:
    """Ask that the figures are right; return whether the named cut proves that nothing is faster. Raises PlanError.

    A plan that calls itself optimal must prove it by its cut, except an all_reduce, whose optimum is no single cut.
    """
    claimed, optimum = number(document.get("algbw"), "algbw"), number(document.get("optimum"), "optimum")
    optimal = document.get("optimal")
    need(type(optimal) is bool, "the plan does not say whether it is optimal")
    need(claimed == algbw, f"the plan claims {claimed} GB/s but its links give {algbw} GB/s")
    need(algbw <= optimum, f"the plan moves {algbw} GB/s, more than the {optimum} GB/s that it calls the optimum")
    need(not optimal or algbw == optimum, f"the plan calls itself optimal at {algbw} GB/s, below {optimum} GB/s")
    _check_notes(document)
    proved = any(bound <= algbw for bound in cut_bounds(document, network, shards))
    if optimal and document["collective"] != "all_reduce":
        need(proved, "the plan calls itself optimal, but the cut that it names does not prove it")
    return proved


def _check_notes(document: dict[str, Any]) -> None:
    count, seconds = document.get("trees_per_rank"), document.get("solve_seconds")
    rooted = document["collective"] in ("broadcast", "reduce")
    need(count is None or (type(count) is int and count > 0), "trees_per_rank is neither null nor a positive number")
    need(isinstance(seconds, int | float) and 0 <= seconds < inf, "solve_seconds is not a time in seconds")
    need(type(document.get("solver_version")) is int, "solver_version is not a whole number")
    need(type(document.get("method")) is str, "method is not a name")
    need(rooted or document.get("root") is None, "the plan names a root, which its collective does not have")


def cut_bounds(document: dict[str, Any], network: Network, shards: list[Fraction]) -> list[Fraction]:
    """Upper bounds in GB/s from the named cut; either of its two sides may have been named."""
    names = document.get("bottleneck")
    if not isinstance(names, list) or not all(type(name) is str for name in names):
        names = [None]
    need(set(names) <= set(network.names), "the bottleneck is not a list of nodes of the network")
    named = set(names)
    side = np.array([name in named for name in network.names])
    bounds = (_cut_bound(document, network, shards, nodes) for nodes in (side, ~side))
    return [bound for bound in bounds if bound is not None]


def _cut_bound(document: dict[str, Any], network: Network, shards: list[Fraction], side: Flags) -> Fraction | None:
    """Bandwidth that the cut around `side` allows, if something must cross it (ForestColl, section on optimality)."""
    ranks = side[: network.ranks]
    if ranks.all() or not ranks.any():
        return None
    leaving = _crossing(network, side[network.sources] & ~side[network.targets])
    entering = _crossing(network, ~side[network.sources] & side[network.targets])
    collective, root = document["collective"], document.get("root")
    if collective == "all_reduce":
        return min(leaving, entering)
    flow = leaving if collective in ("all_gather", "broadcast") else entering
    if root is not None:
        return flow if side[root] else None
    weight = sum((shard for shard, within in zip(shards, ranks, strict=True) if within), Fraction(0))
    return flow / weight if weight else None


def _crossing(network: Network, links: Flags) -> Fraction:
    return sum((network.bandwidths[link] for link in np.flatnonzero(links)), Fraction(0))
