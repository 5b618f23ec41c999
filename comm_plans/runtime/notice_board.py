"""What ranks that share no connection tell one another through the store: that they live, and that all is lost."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from itertools import count
from threading import Event, Thread
from time import monotonic

import torch.distributed as dist

FAILURE = "failure"
PERIOD = 0.25  # seconds between two signs of life, and between two looks while there is something to wait for


class NoticeBoard:
    """One rank's view of the board, with a thread of its own, since a store may not answer.

    heard: called with the notice of a failure, or with None at each look that finds the store gone.
    """

    def __init__(self, store: dist.Store, heard: Callable[[str | None], None]) -> None:
        self._store: dist.Store = store.clone()  # type: ignore[attr-defined]  # missing in torch's stubs
        self._heard = heard
        self._rank: int | None = None
        self._peers: Collection[int] = ()
        self._beats: dict[int, bytes] = {}
        self._alive: dict[int, float] = {}
        self._busy = False
        self._closed = Event()
        self._thread = Thread(target=self._run, name="plan notices", daemon=True)
        self._thread.start()

    def join(self, rank: int, peers: Collection[int]) -> None:
        """Be seen as `rank`, and look after `peers`, who do the same."""
        self._rank, self._peers = rank, peers

    def busy(self, busy: bool) -> None:
        """Say whether it is worth looking."""
        self._busy = busy

    def age(self, peer: int) -> float:
        """Seconds since a new sign of the peer's life was seen; it means little unless busy for longer than that."""
        return monotonic() - self._alive.get(peer, 0.0)

    def post(self, notice: str) -> None:
        """Tell the others of a failure, as far as the store can still be reached."""
        with suppress(RuntimeError):
            self._store.set(FAILURE, notice)

    def close(self) -> None:
        """End the thread, unless it hangs in the store."""
        self._closed.set()
        self._thread.join(1.0)

    def _run(self) -> None:
        for beat in count():
            if self._closed.wait(PERIOD):
                return
            try:
                self._look(str(beat))
            except RuntimeError:
                self._heard(None)

    def _look(self, beat: str) -> None:
        if self._rank is not None:
            self._store.set(str(self._rank), beat)
        if not self._busy:
            return
        if self._store.check([FAILURE]):
            self._heard(self._store.get(FAILURE).decode())
        for peer in self._peers:
            seen = self._store.get(str(peer)) if self._store.check([str(peer)]) else b""
            if seen != self._beats.get(peer):
                self._beats[peer], self._alive[peer] = seen, monotonic()
