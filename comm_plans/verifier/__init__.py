"""Replays a plan from its JSON form and trusts nothing: neither the solver nor the classes that wrote it.

Every tree carries one interval of the buffer. The replay follows each of its edges in order and asks that the sender
already holds the data, that the path is made of existing links with switches between, and that every rank is reached
(or, in a reduction, heard) exactly once. Intervals must cover the buffer exactly once, and the bandwidth must be what
the loads of the links give, in exact arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from comm_plans.verifier.arrays import OPERATIONS, need, read_forest, read_network, read_shards
from comm_plans.verifier.claims import check_claims, cut_bounds
from comm_plans.verifier.cover import check_cover
from comm_plans.verifier.loads import bandwidth
from comm_plans.verifier.replay import check_replay


@dataclass(frozen=True)
class Verdict:
    """What the replay found: `algbw` in GB/s, the busiest link, whether the named cut proves that no plan is faster."""

    collective: str
    ranks: int
    trees: int
    algbw: Fraction
    busiest: tuple[str, str]
    proved: bool


def verify(document: dict[str, Any]) -> Verdict:
    """Check a plan in the JSON form of docs/plan-format.md. Raises PlanError with a sentence on what is wrong."""
    collective = _check_header(document)
    network = read_network(document)
    shards = read_shards(document, network.ranks)
    forest = read_forest(document, network)
    check_replay(forest, network)
    check_cover(document, forest, network, shards)
    algbw, busiest = bandwidth(forest, network)
    proved = check_claims(document, network, shards, algbw)
    return Verdict(collective, network.ranks, len(forest.shares), algbw, network.ends(busiest), proved)


def appraise(document: dict[str, Any]) -> tuple[Fraction, list[Fraction]]:
    """Bandwidth that a well-formed plan reaches on its network, and the upper bounds that its cut gives, in GB/s.

    Whoever moves a plan to other bandwidths asks this for the figures to claim; `verify` judges them afterwards.
    """
    network = read_network(document)
    algbw, _ = bandwidth(read_forest(document, network), network)
    return algbw, cut_bounds(document, network, read_shards(document, network.ranks))


def _check_header(document: dict[str, Any]) -> str:
    need(isinstance(document, dict) and document.get("format") == "comm-plan", "its format is not 'comm-plan'")
    version, collective = document.get("version"), document.get("collective")
    need(type(version) is int and version == 1, f"plan version {version!r:.20} is unknown; this reads version 1")
    need(type(collective) is str and collective in OPERATIONS, f"the collective is none of {', '.join(OPERATIONS)}")
    return str(collective)
