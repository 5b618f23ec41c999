"""Times of one thread on a busy machine: calls that nobody interrupted count, if there are enough of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

    def kept(self, all_quiet: bool) -> list[float]:
        """All but the first, in which compiled code is loaded, or of them the quiet ones."""
        pairs = list(zip(self.milliseconds, self.quiet, strict=True))[1:]
        return [each for each, undisturbed in pairs if undisturbed or not all_quiet]


def kept(ways: Mapping[str, Samples]) -> dict[str, list[float]]:
    """Of each way its quiet samples, if every way has enough of them, else all."""
    enough = all(sum(each.quiet[1:]) >= ENOUGH for each in ways.values())
    return {name: each.kept(enough) for name, each in ways.items()}
