"""The threads that carry a program over sends and receives: one for each tree and direction, chunk after chunk."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from threading import Lock, Thread
from time import monotonic
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor

from comm_plans.runtime.aliases import writable
from comm_plans.runtime.program import RankProgram, TreePart
from comm_plans.runtime.transport import Job, TransportError

WINDOW = 2  # receives posted for a peer
CHUNKS = 32  # that a tree's data is cut into; each costs a thread more work than a stream
FEWEST_BYTES, MOST_BYTES = 8 << 10, 64 << 10  # of a chunk


class PointToPoint(Protocol):
    """What is asked of a process group: messages between two ranks that keep the order of their tag."""

    def rank(self) -> int:
        """This rank."""

    def size(self) -> int:
        """Number of ranks."""

    def send(self, tensors: list[Tensor], target: int, tag: int, /) -> dist.Work:
        """Start to send one tensor."""

    def recv(self, tensors: list[Tensor], source: int, tag: int, /) -> dist.Work:
        """Start to receive one tensor."""


class Task:
    """A job on its way through the lanes of its program.

    deadline: seconds without data and without a sign of life after which a peer is given up.
    """

    def __init__(self, program: RankProgram, buffer: Tensor, deadline: float, lanes: int) -> None:
        self.job = Job()
        self.program = program
        self.deadline = deadline
        self._buffer = writable(buffer)
        self._heard = monotonic()
        self._lanes = lanes
        self._lock = Lock()

    @property
    def silence(self) -> float:
        """Seconds since something moved."""
        return monotonic() - self._heard

    def chunks(self, tree: TreePart) -> list[Tensor]:
        """Views of what the tree carries, in the order in which they move."""
        low, high = self.program.piece(tree, self._buffer.numel())
        carried = self._buffer[low:high]
        wanted = min(max(carried.nbytes // CHUNKS, FEWEST_BYTES), MOST_BYTES) & ~15
        return list(carried.split(wanted // carried.element_size())) if len(carried) else []

    def wait(self, work: dist.Work, peer: int) -> None:
        """Wait for a send or receive. Raises TransportError that names the peer if it fails."""
        try:
            work.wait()
        except RuntimeError as error:
            raise self.broken_off(peer) from error
        self._heard = monotonic()

    def broken_off(self, peer: int) -> TransportError:
        """The error of a send or receive that fails."""
        return TransportError(
            f"rank {peer} broke off the {self.program.collective}; look at its own output for the cause"
        )

    def left(self) -> None:
        """A lane has done its part."""
        with self._lock:
            self._lanes -= 1
        if not self._lanes:
            self.job.finish()


class Lane:
    """One tree in one direction: adds up what its sources send, or takes it over as it is, and sends it on.

    Sums are made in the order of `sources`. `failed` is told of an error, after which the lane's thread has ended.
    """

    def __init__(
        self,
        group: PointToPoint,
        tree: TreePart,
        sources: Sequence[int],
        adds: bool,
        targets: Sequence[int],
        tags: tuple[int, int],
        failed: Callable[[TransportError], None],
    ) -> None:
        self.waiting_for: int | None = None
        self._group = group
        self._tree = tree
        self._sources = sources
        self._adds = adds
        self._targets = targets
        self._tag_in, self._tag_out = tags
        self._failed = failed
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._thread = Thread(target=self._run, name=f"plan tree {tree.index}", daemon=True)
        self._thread.start()

    def put(self, task: Task) -> None:
        """Queue a task."""
        self._tasks.put(task)

    def end(self, patience: float | None = None) -> None:
        """End the thread after the tasks that it has; wait for that at most `patience` seconds."""
        self._tasks.put(None)
        self._thread.join(patience)

    def _run(self) -> None:
        while task := self._tasks.get():
            try:
                self._carry(task)
            except TransportError as error:
                self._failed(error)
                return
            except Exception as error:  # in a thread nobody else would hear of it
                self._failed(TransportError(f"the {task.program.collective} broke off: {error}"))
                return
            task.left()

    def _carry(self, task: Task) -> None:
        chunks = task.chunks(self._tree)
        arrivals = [self._arrivals(task, source, chunks) for source in self._sources]
        sent = deque[tuple[dist.Work, int]]()
        for chunk in chunks:
            for arrival in arrivals:
                arrived = next(arrival)
                if self._adds:
                    chunk += arrived
            sent.extend(
                (_posted(self._group.send, task, chunk, target, self._tag_out), target) for target in self._targets
            )
        for work, target in sent:
            self._wait(task, work, target)

    def _arrivals(self, task: Task, source: int, chunks: Sequence[Tensor]) -> Iterator[Tensor]:
        """What comes from `source`, chunk by chunk: in scratch memory if it is to be added, else in its place."""
        landings = _scratch(chunks) if self._adds else chunks
        posted: deque[dist.Work] = deque()
        for number, landing in enumerate(landings):
            for ahead in landings[number + len(posted) : number + WINDOW]:
                posted.append(_posted(self._group.recv, task, ahead, source, self._tag_in))
            self._wait(task, posted.popleft(), source)
            yield landing

    def _wait(self, task: Task, work: dist.Work, peer: int) -> None:
        self.waiting_for = peer
        task.wait(work, peer)
        self.waiting_for = None


def _posted(call: Callable[..., dist.Work], task: Task, chunk: Tensor, peer: int, tag: int) -> dist.Work:
    """A send or receive under way, which fails at once where the connection is known to be broken."""
    try:
        return call([chunk], peer, tag)
    except RuntimeError as error:
        raise task.broken_off(peer) from error


def lanes_of(
    group: PointToPoint, tree: TreePart, first_tag: int, failed: Callable[[TransportError], None]
) -> list[Lane]:
    """The lanes of one rank in one tree, which has two tags: towards its root and away from it."""
    up, down = first_tag, first_tag + 1
    lanes = []
    if tree.reduce_parent is not None:
        lanes.append(Lane(group, tree, tree.reduce_children, True, (tree.reduce_parent,), (up, up), failed))
    elif tree.broadcast_parent is None:
        lanes.append(Lane(group, tree, tree.reduce_children, True, tree.broadcast_children, (up, down), failed))
    if tree.broadcast_parent is not None:
        lanes.append(Lane(group, tree, (tree.broadcast_parent,), False, tree.broadcast_children, (down, down), failed))
    return lanes


def _scratch(chunks: Sequence[Tensor]) -> list[Tensor]:
    """Memory for arrivals, as many chunks of it as are under way at once."""
    slots = [torch.empty_like(chunk) for chunk in chunks[:WINDOW]]
    return [slots[number % WINDOW][: len(chunk)] for number, chunk in enumerate(chunks)]
