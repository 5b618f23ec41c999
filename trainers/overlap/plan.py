"""A plan of overlapping: what each stream launches when, with which share of the device, and what that saves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import Any, Literal

from trainers.errors import OverlapError
from trainers.overlap.operations import OperationGraph, Resource

VERSION = 1
Mode = Literal["serial", "overlapped"]
Launch = tuple[int, str]
"""An operation of an iteration: (iteration, name)."""


@dataclass(frozen=True)
class OverlapPlan:
    """How the operations of one graph run on one machine.

    mode: serial: one after another in the order of their starts, each with the whole device. streams: names in launch
    order. shares: part of the device that an operation takes while others run. starts, ends: predicted seconds since
    the iteration began; one that starts after `period_seconds` runs while the next iteration has begun.
    period_seconds: predicted time from iteration to iteration; serial_seconds: of one operation after another.
    """

    mode: Mode
    graph_digest: str
    machine: str
    streams: Mapping[Resource, tuple[str, ...]]
    shares: Mapping[str, float]
    starts: Mapping[str, float]
    ends: Mapping[str, float]
    period_seconds: float
    serial_seconds: float
    version: int = field(default=VERSION, init=False)

    @property
    def order(self) -> tuple[str, ...]:
        """All operations of an iteration by their starts: none waits for a later one."""
        return tuple(sorted(self.starts, key=lambda name: (self.starts[name], self.ends[name])))

    def launches(self, iterations: int = 1) -> dict[Resource, list[Launch]]:
        """What each stream launches for several iterations, of which one may begin before the last has ended.

        Then what operations hand to each other must not lie where the next iteration's lies.
        """

        def due(launch: Launch) -> tuple[float, int]:
            return launch[0] * self.period_seconds + self.starts[launch[1]], launch[0]

        return {
            resource: sorted(((turn, name) for turn in range(iterations) for name in names), key=due)
            for resource, names in self.streams.items()
        }

    def check(self, graph: OperationGraph, machine: str) -> None:
        """Raise OverlapError for a plan of another graph or of another machine."""
        if self.graph_digest != graph.digest:
            raise OverlapError("The plan of overlapping is for another graph of operations; search one for this graph.")
        if self.machine != machine:
            raise OverlapError(
                f"The plan of overlapping comes from a profile of another machine ({self.machine}); profile this one"
                f" ({machine}) and search again."
            )

    def to_json(self) -> str:
        """The same text for the same plan."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> OverlapPlan:
        """Read what `to_json` wrote; OverlapError if it is anything else."""
        try:
            fields = json.loads(text)
            version = fields.pop("version")
            if version != VERSION:
                raise OverlapError(f"The plan of overlapping has version {version}, not {VERSION}; search it again.")
            return cls._from_fields(fields)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise OverlapError(f"This is no plan of overlapping ({error}); search it again.") from None

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> OverlapPlan:
        fields["streams"] = {Resource(name): tuple(names) for name, names in fields["streams"].items()}
        plan = cls(**fields)
        names = sorted(name for names in plan.streams.values() for name in names)
        if plan.mode not in ("serial", "overlapped"):
            raise ValueError(f"mode {plan.mode}")
        for part in (plan.starts, plan.ends, plan.shares):
            if sorted(part) != names:
                raise ValueError("its parts name different operations")
            _check_numbers(*part.values())
        _check_numbers(plan.period_seconds, plan.serial_seconds)
        return plan


def _check_numbers(*values: Any) -> None:
    if not all(type(value) in (int, float) and isfinite(value) and value >= 0 for value in values):
        raise ValueError("a time or a share is no number")
