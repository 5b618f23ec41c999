"""What is asked of the plan cache, in one form: questions that one plan answers have one key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from comm_plans.canonical import canonical_key
from comm_plans.plan import SOLVER_VERSION, Plan
from comm_plans.reuse import marks_of, moved_to
from comm_plans.topology import Topology
from comm_plans.verifier import verify

DEFAULTS = {"method": "forest", "trees_per_rank": None, "tolerance": 0, "trim": False, "symmetric": True}


@dataclass(frozen=True)
class Question:
    """What a plan answers: a collective on a network, under options of `solve`; `key` names the file."""

    topology: Topology
    collective: str
    root: int | None
    shards: tuple[Fraction, ...] | None
    options: str

    @classmethod
    def of(
        cls,
        topology: Topology,
        collective: str,
        *,
        root: int | None = None,
        shards: Sequence[Fraction] | None = None,
        **options: object,
    ) -> Question:
        """Put it in one form, in which options at their defaults do not count."""
        told = {name: str(value) for name, value in sorted(options.items()) if value != DEFAULTS.get(name, "")}
        sizes = None if shards is None else tuple(map(Fraction, shards))
        return cls(topology, collective, root, sizes, json.dumps(told))

    @property
    def marks(self) -> list[str]:
        """What sets each rank apart."""
        return marks_of(self.topology, self.root, self.shards)

    @property
    def key(self) -> str:
        """Equal for all askers whom one plan can serve."""
        parts = (canonical_key(self.topology, self.marks), self.collective, self.options, str(SOLVER_VERSION))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]

    def answered_by(self, summary: dict[str, Any], document: dict[str, Any]) -> Plan | None:
        """The plan of a cache file in the asker's numbering and verified there, or None where it answers another one.

        Raises PlanError where it is no right plan.
        """
        if summary["options"] != self.options or document["collective"] != self.collective:
            return None
        stored = Plan.from_document(document)
        shards = None if self.shards is None else stored.shards
        plan = moved_to(self.topology, stored, self.marks, marks_of(stored.topology, stored.root, shards))
        if plan is not None:
            verify(plan.to_document())
        return plan
