"""Ctrl-C and SIGTERM as one exception, so that a run that is told to end says so everywhere before it does."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType


class Stopped(BaseException):
    """The process was told to end; `number` is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


@contextmanager
def stopping_on_signals() -> Iterator[None]:
    """End the block with Stopped at SIGINT or SIGTERM; a further signal cuts short whatever cleans up inside it."""
    first: int | None = None

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal first
        first = first or number
        raise KeyboardInterrupt  # the one exception that Ray lets out of its waits

    with handling(stop):
        try:
            yield
        except KeyboardInterrupt:
            raise Stopped(first or signal.SIGINT) from None


@contextmanager
def ignoring_signals() -> Iterator[None]:
    """Let nothing of the block be lost to a second Ctrl-C."""
    with handling(signal.SIG_IGN):
        yield


@contextmanager
def handling(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> Iterator[None]:
    """Let a handler have SIGINT and SIGTERM inside the block, if it is in the thread that signals reach."""
    if current_thread() is not main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
