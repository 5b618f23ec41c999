"""The job and its replicas as copies of one training: which of them makes which trial, and who keeps what.

Every trial begins with the same bits whichever copy makes it, so that how many there are changes nothing but the time.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.trial import START, Rewindable


@dataclass
class Copies:
    """`job` holds the real steps; `replicas` are there for trials alone."""

    job: Rewindable
    replicas: Sequence[Rewindable] = ()
    _start: int | None = None  # the real step whose state is kept
    _ready: list[Rewindable] = field(default_factory=list)  # copies that keep it

    def spread(self, holders: Sequence[Rewindable | None]) -> list[Rewindable]:
        """Who makes each trial: evenly, and who keeps the end that it goes on from if that is as good."""
        copies = [self.job, *self.replicas]
        load = [0] * len(copies)
        chosen = []
        for holder in holders:
            idle = [number for number, trials in enumerate(load) if trials == min(load)]
            number = next((number for number in idle if copies[number] is holder), idle[0])
            load[number] += 1
            chosen.append(copies[number])
        return chosen

    def starts(self, chosen: Sequence[Rewindable], step: int) -> Iterator[dict[str, Any]]:
        """What each of the chosen has to take before it stands at the start; the job itself stands there.

        The job keeps the start once a stage; the others have it from there, all of them from one sending.
        """
        if self._start != step:
            self.job.keep(START)
            self._start, self._ready = step, [self.job]
        state = None
        for copy in chosen:
            if copy in self._ready:
                yield {}
                continue
            self._ready.append(copy)
            state = self.job.kept(START) if state is None else state
            yield {START: state}

    def forget_start(self) -> None:
        """Give the memory of the start back, everywhere."""
        for copy in self._ready:
            copy.forget(START)
        self._start, self._ready = None, []

    def close(self) -> None:
        """End whatever is under way, everywhere."""
        for copy in (self.job, *self.replicas):
            copy.close()
