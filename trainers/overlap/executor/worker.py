"""A thread that does one thing after another with a share of the processor, until one of them fails."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Thread

import torch

Action = Callable[[], None]


class Worker:
    """A persistent thread; `failed` is called in it with the first exception, after which nothing more is done.

    threads: how many the operations of torch may use in it.
    """

    def __init__(self, name: str, threads: int, failed: Callable[[BaseException], None]) -> None:
        self._actions: SimpleQueue[Action | None] = SimpleQueue()
        self._failed = failed
        self._ready = Event()
        self._thread = Thread(target=self._run, args=(threads,), name=name, daemon=True)
        own = torch.get_num_threads()
        self._thread.start()
        self._ready.wait()
        torch.set_num_threads(own)  # the thread's own number has become that of MKL, too

    def put(self, action: Action) -> None:
        """Have it done after all that was put before."""
        self._actions.put(action)

    def close(self, seconds: float | None = None) -> None:
        """End the thread after what was put, waiting for it so long at most."""
        self._actions.put(None)
        self._thread.join(seconds)

    def _run(self, threads: int) -> None:
        torch.set_num_threads(threads)
        self._ready.set()
        while (action := self._actions.get()) is not None:
            try:
                action()
            except BaseException as error:
                self._failed(error)
                return
