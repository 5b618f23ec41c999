"""Programs over tagged sends and receives of any torch process group.

Each tree and direction of a program is a lane with a thread of its own, which takes the jobs in order; so the next job
starts on a tree as soon as the last one has left it. A lane keeps two receives posted for each rank it hears from: gloo
sends once a receive is posted, so that this window is the flow control. Messages of one tag arrive in their order.
"""

from __future__ import annotations

from threading import Condition, Thread

import torch.distributed as dist
from torch import Tensor

from comm_plans.errors import listed
from comm_plans.runtime.agreement import Meeting, check_digests
from comm_plans.runtime.inner_group import gloo_messages
from comm_plans.runtime.lanes import Lane, PointToPoint, Task, lanes_of
from comm_plans.runtime.notice_board import PERIOD, NoticeBoard
from comm_plans.runtime.program import RankProgram
from comm_plans.runtime.transport import Job, TransportError

SILENCE = 0.6  # seconds without an arrival after which a store that is gone means that rank 0 is


class P2PTransport:
    """A Transport of threads that send and receive. All ranks must come to the first submission of a program."""

    def __init__(
        self,
        store: dist.Store,
        *,
        group: PointToPoint | None = None,
        interface: str | None = None,
        deadline: float = 5.0,
        timeout: float = 1800.0,
    ) -> None:
        """store: reaches all ranks; a fresh prefix for each transport. group: carries the messages, and nobody else's;
        by default gloo over `interface`, made at the first submission.

        deadline: seconds without a sign of life after which a peer is given up, or ten times the predicted time if that
        is more. timeout: seconds for which ranks that live but lag behind are waited for.
        """
        self._store, self._group, self._interface = store, group, interface
        self._deadline, self._timeout = deadline, timeout
        self._meetings = 0
        self._lanes: dict[str, list[Lane]] = {}
        self._next_tag = 0
        self._tasks: list[Task] = []
        self._failure: TransportError | None = None
        self._changed = Condition()
        self._board = NoticeBoard(dist.PrefixStore("failures", store), self._heard)
        self._thread = Thread(target=self._watch, name="plan deadlines", daemon=True)
        self._thread.start()

    def submit(self, program: RankProgram, buffer: Tensor) -> Job:
        """Start a collective; see `Transport.submit`."""
        self._check()
        lanes = self._lanes[program.digest] if program.digest in self._lanes else self._open(program)
        deadline = max(self._deadline, 10 * program.seconds(buffer.nbytes))
        task = Task(program, buffer, deadline, len(lanes))
        with self._changed:
            self._check()
            self._tasks.append(task)
            self._changed.notify()
            self._board.busy(True)
        task.job.add_done_callback(lambda job: self._ended(task))
        for lane in lanes:
            lane.put(task)
        return task.job

    def release(self, program: RankProgram) -> None:
        """Let the program's jobs end, then its threads; see `Transport.release`."""
        for lane in self._lanes.pop(program.digest, []):
            lane.end()

    def close(self, reason: str = "the transport was closed") -> None:
        """Fail open jobs and end all threads, but for those that hang in a receive or in a store that is stopped."""
        self._fail(TransportError(reason))
        for lanes in self._lanes.values():
            for lane in lanes:
                lane.end(0.0 if lane.waiting_for is not None else 1.0)
        self._lanes.clear()
        self._board.close()
        self._thread.join(1.0)

    def _open(self, program: RankProgram) -> list[Lane]:
        rank, world_size = program.rank, program.world_size
        self._meetings += 1
        meeting = Meeting(dist.PrefixStore(f"meeting{self._meetings}", self._store), rank, world_size)
        check_digests(meeting, program)
        self._board.join(rank, [peer for peer in range(world_size) if peer != rank])
        if self._group is None:
            store = dist.PrefixStore("gloo", self._store)
            self._group = gloo_messages(store, rank, world_size, self._timeout, self._interface)
        lanes = []
        for tree in program.trees:
            lanes += lanes_of(self._group, tree, self._next_tag, self._broke)
            self._next_tag += 2
        self._lanes[program.digest] = lanes
        return lanes

    def _check(self) -> None:
        if self._failure:
            raise TransportError(f"{self._failure}; make the group anew")

    def _ended(self, task: Task) -> None:
        with self._changed:
            self._tasks.remove(task)
            self._board.busy(bool(self._tasks))

    def _broke(self, error: TransportError) -> None:
        """A lane has failed: tell the caller first and then the others, whom the store may no longer reach."""
        if self._fail(error):
            self._board.post(str(error))

    def _fail(self, error: TransportError) -> bool:
        """End all jobs with the first error that there is; whether this was it."""
        with self._changed:
            first, self._failure = self._failure is None, self._failure or error
            tasks = list(self._tasks)
            self._changed.notify()
        for task in tasks:
            task.job.finish(self._failure)
        return first

    def _heard(self, notice: str | None) -> None:
        if notice is not None:
            self._fail(TransportError(notice))
            return
        with self._changed:
            silent = all(task.silence > SILENCE for task in self._tasks)
        if silent:
            self._fail(TransportError("rank 0 and its store are gone; look at its own output for the cause"))

    def _watch(self) -> None:
        """Fail when a task is overdue."""
        with self._changed:
            while not self._failure and not (lost := self._lost()):
                self._changed.wait(PERIOD if self._tasks else None)
        if not self._failure:
            self._broke(TransportError(lost))

    def _lost(self) -> str:
        """Whom it makes no sense to wait for any longer, as a sentence; empty while there is hope."""
        for task in self._tasks:
            lanes = self._lanes.get(task.program.digest, [])
            awaited = sorted({lane.waiting_for for lane in lanes if lane.waiting_for is not None})
            dead = [peer for peer in awaited if min(task.silence, self._board.age(peer)) > task.deadline]
            if dead or task.silence > self._timeout:
                names = listed(f"rank {peer}" for peer in dead or awaited)
                return f"no word from {names} in a {task.program.collective}; look whether it still runs"
        return ""
