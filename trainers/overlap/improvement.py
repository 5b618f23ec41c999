"""A schedule made better step by step under interference: by other places in launch order, and by other shares.

Each step is judged by simulation. The search for structure (stage I) knows no interference, so its order is a start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from time import monotonic

from trainers.overlap.cyclic import rivals
from trainers.overlap.schedule import Schedule
from trainers.overlap.shares import GRID, partners, uniform, uniform_choices
from trainers.overlap.simulator import Device, Shares, Steady, steady

_NOTABLE = 1e-6
_ATTEMPTS = 4


@dataclass(frozen=True)
class Draft:
    """A launch order, shares, and what they come to."""

    schedule: Schedule
    shares: Shares
    steady: Steady

    @property
    def period(self) -> float:
        """Simulated seconds an iteration."""
        return self.steady.period


@dataclass(frozen=True)
class Improvement:
    """Drafts for one device, made better until `deadline` (of the monotonic clock)."""

    device: Device
    periodic: bool
    deadline: float

    def first(self, schedule: Schedule, grid: Sequence[float] = GRID) -> Draft | None:
        """With the best of all choices of one share a resource; None if streams would wait for each other for ever."""
        choices = (uniform(self.device, choice) for choice in uniform_choices(self.device, grid))
        drafts = [found for shares in choices if (found := self._draft(schedule, shares))]
        return min(drafts, key=lambda draft: draft.period, default=None)

    def improved(self, draft: Draft) -> Draft:
        """Take every step that makes the period shorter, until none does or time is up."""
        before = None
        while draft is not before and monotonic() < self.deadline:
            before = draft
            for name in self._movable:
                draft = self._shortest(draft, ((each, draft.shares) for each in self._other_places(draft, name)))
            for name in self.device.graph.names:
                draft = self._shortest(draft, ((draft.schedule, each) for each in self._other_shares(draft, name)))
        return draft

    def settled(self, draft: Draft) -> Draft | None:
        """The draft launched by the starts that it predicts, as a plan will be; None if these do not come true."""
        for _ in range(_ATTEMPTS):
            predicted = Schedule(draft.steady.starts, draft.period, draft.schedule.how)
            again = self._draft(predicted, draft.shares)
            if again is None or again.period <= draft.period * (1 + _NOTABLE):
                return again and draft
            draft = again
        return None

    def _shortest(self, draft: Draft, others: Iterator[tuple[Schedule, Shares]]) -> Draft:
        """The best of a draft and others, as far as there is time to look at them."""
        best = draft
        for schedule, shares in others:
            if monotonic() > self.deadline:
                break
            other = self._draft(schedule, shares)
            if other and other.period < best.period * (1 - _NOTABLE):
                best = other
        return best

    @cached_property
    def _movable(self) -> list[str]:
        """Operations whose place among others of their stream isn't settled by dependencies."""
        pairs = (pair for pair in rivals(self.device.graph, self.periodic) if pair.free)
        names = {name for pair in pairs for name in (pair.first, pair.second)}
        return [name for name in self.device.graph.names if name in names]

    def _draft(self, schedule: Schedule, shares: Shares) -> Draft | None:
        found = steady(self.device, schedule, shares, self.periodic)
        return Draft(schedule, shares, found) if found else None

    def _other_shares(self, draft: Draft, name: str) -> Iterator[Shares]:
        for share in GRID if self.device.graph[name].resource in partners(self.device) else ():
            yield {**draft.shares, name: share}

    def _other_places(self, draft: Draft, name: str) -> Iterator[Schedule]:
        """The operation amid any two others of its stream, in the lap that is nearest to where it was."""
        schedule = draft.schedule
        period, start = schedule.period, schedule.starts[name]
        stream = self.device.graph.on(self.device.graph[name].resource)
        phases = sorted(schedule.starts[other] % period for other in stream if other != name)
        for left, right in pairwise([*phases, phases[0] + period]):
            middle = (left + right) / 2
            lap = round((start - middle) / period)
            yield replace(schedule, starts={**schedule.starts, name: middle + lap * period})
