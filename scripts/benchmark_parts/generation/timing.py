"""Times of one thread on a busy machine: calls that nobody interrupted count, if there are enough of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from resource import RUSAGE_THREAD, getrusage
from time import thread_time
from typing import Any, TypeVar

Result = TypeVar("Result")
ENOUGH = 10


@dataclass
class Samples:
    """Milliseconds of each call, and which calls nobody interrupted: afterwards caches hold what others read."""

    milliseconds: list[float] = field(default_factory=list)
    quiet: list[bool] = field(default_factory=list)

    def time(self, call: Callable[..., Result], *arguments: Any) -> Result:
        switches, begun = getrusage(RUSAGE_THREAD).ru_nivcsw, thread_time()
        result = call(*arguments)
        self.milliseconds.append(1e3 * (thread_time() - begun))
        self.quiet.append(getrusage(RUSAGE_THREAD).ru_nivcsw == switches)
        return result

    def kept(self) -> list[float]:
        """All but the first, in which compiled code is loaded; of them the quiet ones if they are enough."""
        pairs = list(zip(self.milliseconds, self.quiet, strict=True))[1:]
        quiet = [each for each, undisturbed in pairs if undisturbed]
        return quiet if len(quiet) >= ENOUGH else [each for each, _ in pairs]
