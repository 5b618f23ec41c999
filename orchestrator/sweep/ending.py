"""Ctrl-C and SIGTERM during a sweep: its trials are ended one by one, so that each says so, and can be resumed."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from ray.tune import Stopper

from orchestrator.stopping import Stopped, handling


class Ending(Stopper):  # type: ignore[misc]
    """Tells Ray Tune to end all trials once the process was told to end. `number`: the signal's."""

    number: int | None = None

    def __call__(self, trial_id: str, result: object) -> bool:
        """No single trial is ended."""
        return False

    def stop_all(self) -> bool:
        """Whether to end them all."""
        return self.number is not None

    @contextmanager
    def at_signals(self) -> Iterator[None]:
        """Raises Stopped at the block's end if a signal came; a further one cuts the ending short."""
        with handling(self._hear):
            try:
                yield
            except KeyboardInterrupt:
                raise Stopped(self.number or signal.SIGINT) from None
        if self.number is not None:
            raise Stopped(self.number)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.number is not None:
            raise KeyboardInterrupt
        self.number = number
