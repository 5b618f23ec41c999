"""Makes a program's connections: ranks compare digests through the store, then connect and greet each other.

The listener lives only as long as the meeting. Whoever cannot prove to belong to the job is let go, at the latest when
the next one comes or a few seconds have passed; the ranks meet all the same.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from selectors import EVENT_READ, DefaultSelector
from time import monotonic

from torch.distributed import Store

from comm_plans.runtime.program import RankProgram
from comm_plans.runtime.streams.announcement import announce
from comm_plans.runtime.streams.handshake import GREETING_BYTES, MAC_BYTES, answer, greeted, greeting
from comm_plans.runtime.streams.wires import Wire, wires
from comm_plans.runtime.transport import TransportError

PATIENCE = 5.0  # seconds in which a greeting or answer must come, once connected
MEETING_SECONDS = 60.0  # once all ranks have published where they listen
MOST_STRANGERS = 64  # connections without a greeting that are kept waiting at once

Streams = dict[Wire, socket.socket]


def meet(store: Store, program: RankProgram, address: str, timeout: float) -> Streams:
    """All connections of the program's rank, non-blocking. Every rank calls it with a store that is fresh for it.

    timeout: seconds until all ranks must have come. Raises TransportError on every rank where digests differ, and
    where a rank does not come.
    """
    with closing(socket.create_server((address, 0), backlog=1024)) as listener:
        secret, places = announce(store, program, listener.getsockname(), timeout)
        with _Meeting(listener, secret, program) as meeting:
            for wire in wires(program):
                if wire.source == program.rank:
                    meeting.connect(wire, places[wire.target])
            return meeting.complete()


class _Meeting:
    """Connections on their way to be part of the program's: those that wait for a greeting, those for an answer."""

    def __init__(self, listener: socket.socket, secret: bytes, program: RankProgram) -> None:
        self.secret, self.digest, self.rank = secret, program.digest, program.rank
        self.collective = program.collective
        self.expected = {wire for wire in wires(program) if wire.target == program.rank}
        self.joined: Streams = {}
        self.strangers: dict[socket.socket, tuple[bytearray, float]] = {}
        self.awaited: dict[socket.socket, tuple[bytearray, Wire, bytes]] = {}
        self.selector = DefaultSelector()
        self.listener = listener
        listener.setblocking(False)
        self.selector.register(listener, EVENT_READ, self._accept)

    def __enter__(self) -> _Meeting:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.selector.close()
        failed = [*self.awaited, *(self.joined.values() if kind else ())]
        for connection in [*self.strangers, *failed]:
            connection.close()

    def connect(self, wire: Wire, place: tuple[str, int]) -> None:
        """Connect to where the wire's target listens, and greet it."""
        said = greeting(self.secret, self.digest, wire)
        with _naming(wire.target):
            own = (self.listener.getsockname()[0], 0)
            connection = socket.create_connection(place, timeout=MEETING_SECONDS, source_address=own)
            self.awaited[connection] = bytearray(), wire, answer(self.secret, said)
            connection.sendall(said)
        connection.setblocking(False)
        self.selector.register(connection, EVENT_READ, self._answered)

    def complete(self) -> Streams:
        """Wait until every wire has joined."""
        end = monotonic() + MEETING_SECONDS
        while self.expected or self.awaited:
            if monotonic() > end:
                raise TransportError(f"{self._missing()} did not come to {self.collective}; see whether it still runs")
            for key, _ in self.selector.select(timeout=1.0):
                key.data(key.fileobj)
            self._dismiss(connection for connection, (_, since) in self.strangers.items() if since < monotonic())
        return self.joined

    def _missing(self) -> str:
        wires = [*self.expected, *(wire for _, wire, _ in self.awaited.values())]
        return "rank " + ", ".join(map(str, sorted({wire.peer(self.rank) for wire in wires})))

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):  # it left before it was let in
            connection, _ = listener.accept()
            self._admit(connection)

    def _admit(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        if len(self.strangers) >= MOST_STRANGERS:
            self._dismiss([next(iter(self.strangers))])
        self.strangers[connection] = bytearray(), monotonic() + PATIENCE
        self.selector.register(connection, EVENT_READ, self._greeted)

    def _greeted(self, connection: socket.socket) -> None:
        heard, _ = self.strangers[connection]
        if not _read(connection, heard, GREETING_BYTES):
            self._dismiss([connection])
        elif len(heard) == GREETING_BYTES:
            wire = greeted(self.secret, self.digest, bytes(heard))
            if wire is None or wire not in self.expected:
                self._dismiss([connection])
                return
            del self.strangers[connection]
            self._join(connection, wire)
            self.expected.remove(wire)
            with _naming(wire.source):
                connection.send(answer(self.secret, bytes(heard)))

    def _answered(self, connection: socket.socket) -> None:
        heard, wire, right = self.awaited[connection]
        with _naming(wire.target):
            if not _read(connection, heard, MAC_BYTES) or not right.startswith(heard):
                raise ConnectionRefusedError("it does not know this job's secret")
        if len(heard) == MAC_BYTES:
            del self.awaited[connection]
            self._join(connection, wire)

    def _join(self, connection: socket.socket, wire: Wire) -> None:
        self.selector.unregister(connection)
        self.joined[wire] = connection

    def _dismiss(self, connections: Iterable[socket.socket]) -> None:
        for connection in list(connections):
            del self.strangers[connection]
            self.selector.unregister(connection)
            connection.close()


def _read(connection: socket.socket, heard: bytearray, whole: int) -> bool:
    """Read towards `whole` bytes; whether the other end is still there."""
    try:
        data = connection.recv(whole - len(heard))
    except OSError:
        return False
    heard += data
    return bool(data)


@contextmanager
def _naming(rank: int) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TransportError(f"rank {rank} cannot be reached ({error}); see whether it still runs") from error
