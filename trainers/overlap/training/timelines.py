"""One step as rows of a timeline: as a plan predicts it, and as a step by a layout really went."""

from __future__ import annotations

from trainers.overlap.operations import Resource
from trainers.overlap.plan import OverlapPlan
from trainers.overlap.training.clock import Clock
from trainers.overlap.training.decision import Row
from trainers.overlap.training.layout import Layout
from trainers.overlap.training.measuring import Subject
from trainers.overlap.training.profile import StepProfile

_STREAMS = {"reduce": Resource.NETWORK, "optimizer": Resource.MEMORY}


def predicted_rows(plan: OverlapPlan) -> list[Row]:
    """An iteration of the plan."""
    return [(_stream(name), name, plan.starts[name], plan.ends[name]) for name in plan.order]


def traced_rows(subject: Subject, layout: Layout, profile: StepProfile) -> list[Row]:
    """The last but one of a few steps in this way, as this rank saw it: what it left under way ends in the last."""
    clock = Clock(subject.model, layout.buckets, profile.places_of(layout.buckets))
    spans = subject.watched(layout, clock, steps=2)
    last = {name: times[-2] for name, times in spans.items() if len(times) > 1}
    begun = min((begin for begin, _ in last.values()), default=0.0)
    rows = [(_stream(name), name, begin - begun, end - begun) for name, (begin, end) in last.items()]
    return sorted(rows, key=lambda row: row[2:])


def _stream(name: str) -> Resource:
    return _STREAMS.get(name.split()[0], Resource.COMPUTE)
