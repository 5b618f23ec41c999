"""The transport: connects when a program is first submitted, then hands its jobs to the progress thread."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from functools import partial
from threading import Lock

from torch import Tensor
from torch.distributed import PrefixStore, Store

from comm_plans.runtime.program import RankProgram
from comm_plans.runtime.streams.address import data_address
from comm_plans.runtime.streams.meeting import meet
from comm_plans.runtime.streams.parts import hand_out, layout
from comm_plans.runtime.streams.progress import Progress, StreamJob
from comm_plans.runtime.streams.wires import Phase, Wire
from comm_plans.runtime.transport import Job, TransportError
from comm_plans.streaming import GIGA

LEAST_DEADLINE = 5.0  # seconds
DEADLINE_FACTOR = 10  # times the predicted time
TIMEOUT = 1800.0  # seconds, as torch waits for a process group
SO_MAX_PACING_RATE = 47  # Linux; not named in Python's socket
PACING_HEADROOM = 1.01  # room to catch up; more would fill the queues of switches until they drop
MOST_PACED = 2**32 - 2  # bytes a second, the option's largest value but one, which means no limit


class StreamTransport:
    """A Transport of one progress thread and one TCP connection for each edge of each tree, phase and program.

    The first submission of a program connects, for which all ranks must come; a job's callback may only submit
    programs that were submitted before.
    """

    def __init__(
        self,
        store: Store,
        *,
        interface: str | None = None,
        pace: bool = True,
        deadline: float = LEAST_DEADLINE,
        timeout: float = TIMEOUT,
    ) -> None:
        """store: reaches all ranks; a fresh prefix for each transport. interface: the network interface of the data.

        pace: hold each connection to the rate that the plan gives it; for networks that the plan's topology describes.
        deadline: seconds without a sign of life after which a peer is given up, or ten times the predicted time if that
        is more. timeout: seconds for which ranks that live but lag behind are waited for.
        Raises TransportError where the interface has no address.
        """
        self._store, self._pace, self._deadline, self._timeout = store, pace, deadline, timeout
        self._address = data_address(store, interface)
        self._progress = Progress(timeout)
        self._meetings = 0
        self._connected: set[str] = set()
        self._lock = Lock()

    def submit(self, program: RankProgram, buffer: Tensor) -> Job:
        """Start a collective, as the seam says."""
        _check_buffer(buffer)
        plan = layout(program, len(buffer), buffer.element_size())
        job = StreamJob(max(self._deadline, DEADLINE_FACTOR * plan.seconds))
        with self._lock:
            if self._progress.failure:
                raise self._progress.failure
            if program.digest not in self._connected:
                self._connect(program)
            parts = partial(hand_out, job, program.rank, plan.pieces, buffer)
            self._progress.start(job, program.digest, parts)
        return job

    def release(self, program: RankProgram) -> None:
        """Wait for all jobs and close the program's connections; all ranks do so between the same jobs."""
        with self._lock:
            self._progress.drain()
            if program.digest in self._connected:
                self._connected.remove(program.digest)
                self._progress.remove(program.digest)

    def close(self, reason: str = "the transport was closed") -> None:
        """Fail what is not done and close everything."""
        self._progress.close(reason)

    def _connect(self, program: RankProgram) -> None:
        self._meetings += 1
        store = PrefixStore(f"meeting{self._meetings}", self._store)
        try:
            connections = meet(store, program, self._address, self._timeout)
        except TransportError as error:
            self.close(str(error))
            raise
        self._tune(program, connections)
        self._progress.add(program.digest, program.rank, connections)
        self._connected.add(program.digest)

    def _tune(self, program: RankProgram, connections: Mapping[Wire, socket.socket]) -> None:
        for wire, connection in connections.items():
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            rate = int(program.trees[wire.tree].rate * GIGA * PACING_HEADROOM)
            if self._pace and wire.phase is not Phase.LIFELINE and rate <= MOST_PACED:
                connection.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, max(1, rate))


def _check_buffer(buffer: Tensor) -> None:
    if buffer.dim() != 1 or not buffer.is_contiguous() or buffer.device.type != "cpu":
        raise TransportError(
            f"the buffer of shape {tuple(buffer.shape)} on {buffer.device} is not flat, contiguous and in the CPU's "
            "memory; pass a flat copy"
        )
