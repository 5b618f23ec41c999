"""How long a call may take before a rank counts as hung: what was configured, or much longer than such calls took."""

import math
from collections import deque
from statistics import median

LEAST_SECONDS = 60.0
LEAST_OTHER_SECONDS = 180.0  # of calls that are rare, above all those of a start, which a busy machine makes slow
FACTOR = 5.0
_STEADY = ("train", "validate")  # calls of which most of a run is made
_FIRST_STEADY = 600.0  # for the first of them: kernels may be compiled, data fetched
_REMEMBERED = 101


class Patience:
    """Remembers what calls took, a step or whatever else they are made of, over all gangs of a run.

    hang_seconds: how much longer than usual training and validation may take; None: five times as long as usual, and
    a minute at least. call_seconds: what any call may take of which nothing is known.
    """

    def __init__(self, hang_seconds: float | None = None, call_seconds: float = 1800.0) -> None:
        self._hang_seconds, self._call_seconds = hang_seconds, call_seconds
        self._taken: dict[str, deque[float]] = {}

    def limit(self, method: str, units: int = 1) -> float:
        """Seconds after which a call of so many units has taken too long."""
        taken = self._taken.get(method)
        usual = units * median(taken) if taken else None
        if self._hang_seconds is not None and method in _STEADY:
            return self._hang_seconds + (units * self._hang_seconds if usual is None else usual)
        least, first = (LEAST_SECONDS, _FIRST_STEADY) if method in _STEADY else (LEAST_OTHER_SECONDS, math.inf)
        return min(first, self._call_seconds) if usual is None else max(least, FACTOR * usual)

    def note(self, method: str, units: int, seconds: float) -> None:
        """A call of so many units has taken `seconds`."""
        self._taken.setdefault(method, deque(maxlen=_REMEMBERED)).append(seconds / max(units, 1))
