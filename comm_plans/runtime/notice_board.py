"""Where ranks that share no connection tell one another that their group has failed: a key in the store."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread

import torch.distributed as dist

KEY = "failure"
PERIOD = 0.2  # seconds between two looks


class NoticeBoard:
    """Looks at the board while there is something to wait for, in a thread of its own: a store may not answer.

    heard: called with the notice, or with None at each look that finds the store gone.
    """

    def __init__(self, store: dist.Store, heard: Callable[[str | None], None]) -> None:
        self._store: dist.Store = store.clone()  # type: ignore[attr-defined]  # missing in torch's stubs
        self._heard = heard
        self._busy = Event()
        self._closed = Event()
        self._thread = Thread(target=self._run, name="plan notices", daemon=True)
        self._thread.start()

    def busy(self, busy: bool) -> None:
        """Say whether it is worth looking."""
        (self._busy.set if busy else self._busy.clear)()

    def post(self, notice: str) -> None:
        """Tell the others, as far as the store can still be reached."""
        with suppress(RuntimeError):
            self._store.set(KEY, notice)

    def close(self) -> None:
        """End the thread, unless it hangs in the store."""
        self._closed.set()
        self._busy.set()
        self._thread.join(1.0)

    def _run(self) -> None:
        while not self._closed.wait(PERIOD):
            self._busy.wait()
            if not self._closed.is_set():
                self._look()

    def _look(self) -> None:
        try:
            if self._store.check([KEY]):
                self._heard(self._store.get(KEY).decode())
        except RuntimeError:
            self._heard(None)
