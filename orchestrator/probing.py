"""Carrying out the probes of a learning-rate policy, on the job alone or side by side with its replicas.

An arm's end stays where it was made until another copy of the job goes on from it. A run that was taken up again has
its probes from the journal, but not their ends: an end that is asked for is run once more, which gives the same bits.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import Any

from orchestrator.copies import Copies
from orchestrator.events import ArmTakenUp, Event, ProbeRan
from orchestrator.learning_rate.dimensions import Settings
from orchestrator.learning_rate.policy import Probe, Probed, Series
from orchestrator.learning_rate.schedules import Schedule
from orchestrator.side_by_side import side_by_side
from orchestrator.trial import Rewindable, Trial, carried_out, end_of, retrace

Emit = Callable[[Event], None]
Asked = tuple[str | None, Schedule, Settings]  # an arm, if the candidate has one, and the candidate


@dataclass
class _Arm:
    """What led to an arm's end, and which copy of the job keeps that end, if one does."""

    probes: tuple[ProbeRan, ...] = ()
    holder: Rewindable | None = None

    @property
    def rates(self) -> list[float]:
        return [rate for ran in self.probes for rate in ran.rates]

    @property
    def losses(self) -> list[float]:
        return [loss for ran in self.probes for loss in ran.train_losses]


@dataclass
class Probing:
    """The probes of one run. `remembered`: those of an earlier process, which are not repeated."""

    copies: Copies
    emit: Emit
    remembered: deque[ProbeRan] = field(default_factory=deque)
    _arms: dict[str, _Arm] = field(default_factory=dict)

    def carry_out(self, action: Probe, step: int) -> Probed:
        """Try every candidate; `step` is the real step reached, where the job stands before and after."""
        for name in self._arms.keys() - {*action.arms, *action.needed}:
            self._forget(name)
        asked = list(action.asked())
        ran = list(self._recalled(action, step, asked))
        self._try(action, step, asked[len(ran) :], ran.append)
        return Probed(tuple(Series(tuple(each.train_losses), tuple(each.validation)) for each in ran))

    def take_up(self, stage: int, name: str, step: int) -> int:
        """Let the job stand at the end of an arm, whose steps are real from now on; returns their number."""
        arm, job = self._arms[name], self.copies.job
        if arm.holder is None:
            retrace(arm.probes, job)
        else:
            for end, state in self._fetched(name, job).items():
                job.take(end, state)
            job.rewind(end_of(name))
        seconds = math.fsum(ran.train_seconds for ran in arm.probes)
        self.emit(ArmTakenUp(stage, name, step, arm.rates, arm.losses, seconds))
        for other in list(self._arms):
            self._forget(other)
        self.copies.forget_start()
        return len(arm.rates)

    def _recalled(self, action: Probe, step: int, asked: Sequence[Asked]) -> Iterator[ProbeRan]:
        """The first of these trials, as far as an earlier process has made them from the same step."""
        for name, candidate, settings in asked:
            if not self.remembered:
                return
            ran = self.remembered[0]
            rates = [candidate.rate(action.taken + each) for each in range(len(ran.rates))]
            same = (action.stage, action.purpose, step, name, action.taken, rates, settings)
            if (ran.stage, ran.purpose, ran.first_step, ran.arm, ran.taken, ran.rates, ran.settings) != same:
                self.remembered.clear()
                return
            self._note(ran, holder=None)
            yield self.remembered.popleft()

    def _try(self, action: Probe, step: int, asked: Sequence[Asked], done: Callable[[ProbeRan], None]) -> None:
        """Make the trials on all copies of the job that there are; what came of them is told in the order asked."""

        def heard(result: tuple[ProbeRan, Rewindable]) -> None:
            ran, copy = result
            self._note(ran, copy)
            self.emit(ran)
            done(ran)

        begin = monotonic()
        copies = self.copies.spread([self._arms[name].holder if name and action.taken else None for name, *_ in asked])
        starts = self.copies.starts(copies, step) if asked else ()
        trials = [self._trial(action, step, *each) for each in zip(asked, copies, starts, strict=True)]
        trials[:1] = [replace(first, preparing=monotonic() - begin) for first in trials[:1]]
        tasks = [(id(copy), partial(_made, trial, copy)) for trial, copy in zip(trials, copies, strict=True)]
        side_by_side(tasks, heard, give_up=self.copies.close)

    def _trial(self, action: Probe, step: int, asked: Asked, copy: Rewindable, start: dict[str, Any]) -> Trial:
        """A trial with all that its copy of the job needs for it."""
        name, candidate, settings = asked
        trial = Trial(action, step, name, candidate, settings, start)
        if name is None or not action.taken:
            return trial
        if self._arms[name].holder is None:
            return replace(trial, way=self._arms[name].probes)
        return replace(trial, brought=start | self._fetched(name, copy))

    def _fetched(self, name: str, copy: Rewindable) -> dict[str, Any]:
        """An arm's end on its way to the copy of the job that goes on from there; nothing where it is there already."""
        arm = self._arms[name]
        if arm.holder is None or arm.holder is copy:
            return {}
        state = arm.holder.kept(end_of(name))
        arm.holder.forget(end_of(name))
        arm.holder = copy
        return {end_of(name): state}

    def _note(self, ran: ProbeRan, holder: Rewindable | None) -> None:
        """An arm has come further; `holder` keeps its end."""
        if ran.arm is not None:
            before = self._arms[ran.arm].probes if ran.taken else ()
            self._arms[ran.arm] = _Arm((*before, ran), holder)

    def _forget(self, name: str) -> None:
        if (holder := self._arms.pop(name).holder) is not None:
            holder.forget(end_of(name))


def _made(trial: Trial, copy: Rewindable) -> tuple[ProbeRan, Rewindable]:
    return carried_out(trial, copy), copy
