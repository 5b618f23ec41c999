"""The ends of connections on this rank: those that send and those that receive.

All of them live in the progress thread. An end listens to its socket exactly while it has something to do there, so
that the thread sleeps unless something can move.
"""

from __future__ import annotations

import socket
from collections import deque
from contextlib import suppress
from selectors import EVENT_READ, EVENT_WRITE, BaseSelector
from time import monotonic

from comm_plans.runtime.streams.flow import Receiving, Sending, new_window
from comm_plans.runtime.transport import TransportError


class Lost(TransportError):  # noqa: N818 - says what became of the peer
    """The connection to a peer is gone."""

    def __init__(self, peer: int, why: str) -> None:
        super().__init__(f"rank {peer} {why}; see its log for why, and start again from the last snapshot")
        self.peer = peer


class End:
    """One end of a connection to `peer`, and whether the thread wakes for it."""

    event = EVENT_READ

    def __init__(self, connection: socket.socket, peer: int, selector: BaseSelector) -> None:
        self.socket, self.peer, self.selector = connection, peer, selector
        self.listening = False

    def listen(self, wanted: bool) -> None:
        """Wake for this end from now on, or no longer."""
        if wanted and not self.listening:
            self.selector.register(self.socket, self.event, self)
        elif self.listening and not wanted:
            self.selector.unregister(self.socket)
        self.listening = wanted

    def ready(self) -> None:
        """The socket can be read or written, as `event` says."""
        raise NotImplementedError

    def close(self) -> None:
        """Close it so that the peer notices at once."""
        self.listen(False)
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class Bell(End):
    """Wakes the thread from other threads."""

    def __init__(self, selector: BaseSelector) -> None:
        self.rope, bell = socket.socketpair()
        bell.setblocking(False)
        self.rope.setblocking(False)
        super().__init__(bell, -1, selector)
        self.listen(True)

    def ring(self) -> None:
        """Wake the thread; where it has ended, or has been rung for already, nothing happens."""
        with suppress(OSError):
            self.rope.send(b"!")

    def ready(self) -> None:
        """It has rung."""
        self.socket.recv(4096)

    def close(self) -> None:
        """Take it down."""
        super().close()
        self.rope.close()


class Outlet(End):
    """Sends its parts in order, each as far as it is ready."""

    event = EVENT_WRITE

    def __init__(self, connection: socket.socket, peer: int, selector: BaseSelector) -> None:
        super().__init__(connection, peer, selector)
        self.parts: deque[Sending] = deque()

    def take(self, part: Sending) -> None:
        """Send this part after the others."""
        self.parts.append(part)
        self.pump()

    def ready(self) -> None:
        """There is room in the network again."""
        self.listen(False)
        self.pump()

    def pump(self) -> None:
        """Send what can be sent, unless the network is full."""
        while self.parts and not self.listening and self._send(self.parts[0]):
            self.parts.popleft().job.part_done()

    def _send(self, part: Sending) -> bool:
        """Whether the part is all sent."""
        try:
            while part.sent < part.ready.at:
                part.sent += self.socket.send(part.view[part.sent : part.ready.at])
        except BlockingIOError:
            self.listen(True)
        except OSError as error:
            raise Lost(self.peer, f"takes no more data ({error.strerror})") from error
        return part.sent == len(part.view)


class Inlet(End):
    """Receives its parts in order. The kernel wakes it once a chunk is there, or all that is missing."""

    def __init__(self, connection: socket.socket, peer: int, selector: BaseSelector) -> None:
        super().__init__(connection, peer, selector)
        self.parts: deque[Receiving] = deque()
        self.window = new_window()
        self.heard = monotonic()
        self.enough = 1

    def take(self, part: Receiving) -> None:
        """Receive this part after the others."""
        self.parts.append(part)
        if len(self.parts) == 1:
            self.pump()

    def ready(self) -> None:
        """Read what has come."""
        part = self.parts[0]
        try:
            count = self.socket.recv_into(part.room())
        except BlockingIOError:
            return
        except OSError as error:
            raise Lost(self.peer, f"broke its connection ({error.strerror})") from error
        if not count:
            raise Lost(self.peer, "closed its connection in the middle of a collective")
        self.heard = monotonic()
        part.took(count)
        self.pump()

    def pump(self) -> None:
        """Go on with what is here, and listen exactly while there is room for more."""
        while self.parts and self.parts[0].settle():
            self.parts.popleft().job.part_done()
        wanted = bool(self.parts) and len(self.parts[0].room()) > 0
        if wanted:
            self._wake_for(self.parts[0])
        self.listen(wanted)

    def stalled(self, now: float) -> bool:
        """Whether a part has begun to arrive and then nothing has come for twice as long as its job's patience.

        Twice: the peer may itself wait for a rank that hangs, whose neighbours are to name that one first.
        """
        if not self.parts:
            return False
        part = self.parts[0]
        return 0 < part.received < part.size and self.listening and now - self.heard > 2 * part.job.patience

    def _wake_for(self, part: Receiving) -> None:
        enough = min(part.chunk, part.size - part.received)
        if enough != self.enough:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, enough)
            self.enough = enough
