"""The connection by which neighbours know that the other one lives, how far it has come, and why it gave up."""

from __future__ import annotations

import socket
from contextlib import suppress
from selectors import BaseSelector
from time import monotonic

from comm_plans.runtime.streams.ends import End
from comm_plans.runtime.transport import TransportError

LONGEST_LINE = 1000


class Told(TransportError):  # noqa: N818 - says how it is known
    """A peer's last words."""


class Lifeline(End):
    """Says now and then how many jobs this rank has begun, and at last why it gives up; hears the same from a peer.

    A number is a sign of life, any other line is last words. That the peer closes it says nothing: it may have done
    its part; whoever still waits for data notices by the stream of that data.
    """

    def __init__(self, connection: socket.socket, peer: int, selector: BaseSelector) -> None:
        super().__init__(connection, peer, selector)
        self.heard = monotonic()
        self.begun = 0
        self.rest = b""
        self.listen(True)

    def say(self, words: str) -> None:
        """One line."""
        with suppress(OSError):
            self.socket.send(words.replace("\n", " ").encode()[:LONGEST_LINE] + b"\n")

    def ready(self) -> None:
        """Listen. Raises Told with the peer's last words."""
        try:
            heard = self.socket.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            heard = b""
        if not heard:
            self.listen(False)
        self.heard = monotonic()
        *lines, self.rest = (self.rest + heard).split(b"\n")
        for line in lines:
            if not line.isdigit():
                raise Told(line.decode(errors="replace"))
            self.begun = int(line)

    def silent(self, now: float, patience: float) -> bool:
        """Whether the peer has given no sign of life for so long, although it has not left."""
        return self.listening and now - self.heard > patience
