"""The progress thread: sleeps until something can move, moves it, and ends everything together when something fails."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from selectors import DefaultSelector
from threading import Thread, current_thread
from time import monotonic
from typing import TypeVar

from comm_plans.runtime.streams.ends import Bell, End, Inlet, Lost, Outlet
from comm_plans.runtime.streams.lifeline import Lifeline, Told
from comm_plans.runtime.streams.wires import Phase, Wire
from comm_plans.runtime.transport import Job, TransportError

BEAT_SECONDS = 0.25
Kind = TypeVar("Kind", bound=End)
Ends = dict[Wire, End]


class StreamJob(Job):
    """A job that is done when all its parts are.

    patience: seconds without a sign of life, or without data once it flows, after which a peer is given up.
    """

    def __init__(self, patience: float) -> None:
        super().__init__()
        self.patience = patience
        self.missing = 1  # handing out the parts

    def part_added(self) -> None:
        """One part more is missing."""
        self.missing += 1

    def part_done(self) -> None:
        """One part less is missing."""
        self.missing -= 1
        if not self.missing:
            self.finish()


class Progress:
    """The thread, and the ends of connections, which it alone touches. `failure` is set once it has given up."""

    def __init__(self, timeout: float) -> None:
        """timeout: seconds for which a job waits for ranks that live but lag behind."""
        self.timeout = timeout
        self.failure: TransportError | None = None
        self._jobs: deque[StreamJob] = deque()
        self._begun = 0
        self._calls: deque[Callable[[], None]] = deque()
        self._ends: dict[str, Ends] = {}
        self._selector = DefaultSelector()
        self._bell = Bell(self._selector)
        self._next_beat = monotonic() + BEAT_SECONDS
        self._thread = Thread(target=self._run, name="comm-plans streams", daemon=True)
        self._thread.start()

    def add(self, key: str, rank: int, connections: Mapping[Wire, socket.socket]) -> None:
        """Take over the connections of a program, known as `key` from now on."""
        self._call(lambda: self._ends.update({key: self._ends_of(rank, connections)}))

    def start(self, job: StreamJob, key: str, parts: Callable[[Ends], None]) -> None:
        """Do `parts`, which hands the job's parts to the ends of the program, and see to it that the job ends."""
        self._jobs.append(job)
        self._begun += 1
        self._call(lambda: parts(self._ends[key]))
        if self.failure:
            job.finish(self.failure)

    def drain(self) -> None:
        """Wait until all jobs are done. Raises TransportError if one failed."""
        for job in tuple(self._jobs):
            job.wait()

    def remove(self, key: str) -> None:
        """Close the connections of a program, whose jobs are done."""
        self._call(lambda: _close(self._ends.pop(key).values()))

    def close(self, reason: str) -> None:
        """Fail what is not done and end the thread."""
        self._call(lambda: self._fail(TransportError(reason)))
        if current_thread() is not self._thread:
            self._thread.join()

    def _call(self, action: Callable[[], None]) -> None:
        self._calls.append(action)
        self._bell.ring()

    def _run(self) -> None:
        try:
            while not self.failure:
                self._round()
        except Lost as lost:
            self._fail(self._last_words(lost))
        except TransportError as error:
            self._fail(error)
        except Exception as error:
            self._fail(TransportError(f"the progress thread stumbled over {error!r}; please report it"))
        self._bell.close()
        self._selector.close()

    def _round(self) -> None:
        for key, _ in self._selector.select(max(0.0, self._next_beat - monotonic())):
            end: End = key.data
            if end.listening:  # another end's move may have ended that
                end.ready()
        while self._calls:
            self._calls.popleft()()
        now = monotonic()
        if now >= self._next_beat:
            self._next_beat = now + BEAT_SECONDS
            self._beat(now)

    def _beat(self, now: float) -> None:
        """Give a sign of life, and give up peers that have given none."""
        lifelines = self._all(Lifeline)
        for lifeline in lifelines:
            lifeline.say(str(self._begun))
        if self._pending():
            patience = self._jobs[0].patience
            _give_up(
                [each.peer for each in lifelines if each.silent(now, patience)],
                f"has given no sign of life for {patience:.3g} s; it hangs or its network is cut",
            )
            inlets = self._all(Inlet)
            _give_up(
                [each.peer for each in inlets if each.stalled(now)],
                f"stopped in the middle of a collective for {2 * patience:.3g} s; its network may be cut",
            )
            if now - max([self._jobs[0].started, *(each.heard for each in inlets)]) > self.timeout:
                late = [each.peer for each in lifelines if each.begun < self._begun]
                _give_up(
                    late or [each.peer for each in inlets if each.parts],
                    f"did not come to the collective within {self.timeout:.3g} s",
                )

    def _pending(self) -> bool:
        """Whether jobs are under way; forgets those that are done."""
        while self._jobs and self._jobs[0].done():
            self._jobs.popleft()
        return bool(self._jobs)

    def _fail(self, error: TransportError) -> None:
        """Tell the neighbours why, unless they may be content; close everything, fail all jobs.

        What was told is passed on even by a rank with nothing to do: it closes its connections, and a neighbour that
        waits for its data may see that before it hears the reason from anyone else.
        """
        self.failure = error
        if self._pending() or isinstance(error, Told):
            for lifeline in self._all(Lifeline):
                lifeline.say(str(error))
        for ends in self._ends.values():
            _close(ends.values())
        while self._jobs:
            self._jobs.popleft().finish(error)

    def _last_words(self, lost: Lost) -> TransportError:
        """Why a peer closed its connection, if it said so; else that it did."""
        try:
            for lifeline in self._all(Lifeline):
                if lifeline.peer == lost.peer:
                    lifeline.ready()
        except Told as told:
            return told
        return lost

    def _ends_of(self, rank: int, connections: Mapping[Wire, socket.socket]) -> Ends:
        return {wire: self._end(wire, rank, connection) for wire, connection in connections.items()}

    def _end(self, wire: Wire, rank: int, connection: socket.socket) -> End:
        kind = Lifeline if wire.phase is Phase.LIFELINE else Outlet if wire.source == rank else Inlet
        return kind(connection, wire.peer(rank), self._selector)

    def _all(self, kind: type[Kind]) -> list[Kind]:
        return [end for ends in self._ends.values() for end in ends.values() if isinstance(end, kind)]


def _close(ends: Iterable[End]) -> None:
    for end in ends:
        end.close()


def _give_up(peers: Iterable[int], why: str) -> None:
    """Raise TransportError if there are such peers."""
    named = ", ".join(str(peer) for peer in sorted(set(peers)))
    if named:
        raise TransportError(f"rank {named} {why}; end it, and start again from the last snapshot")
