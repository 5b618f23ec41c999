"""How much a group moved by plan and how much by its inner group, and how long the planned part took."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from threading import Lock
from typing import Any


@dataclass
class Count:
    """Calls and bytes of one collective; seconds are those of planned calls that have ended."""

    planned_calls: int = 0
    planned_bytes: int = 0
    other_calls: int = 0
    other_bytes: int = 0
    predicted_seconds: float = 0.0
    measured_seconds: float = 0.0


class Counters:
    """Counts by collective; calls come from the caller's thread and endings from a transport's."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.reset()

    def reset(self) -> None:
        """Start again from nothing."""
        with self._lock:
            self._counts: defaultdict[str, Count] = defaultdict(Count)

    def planned(self, collective: str, size_bytes: int) -> None:
        """A call goes by plan."""
        with self._lock:
            self._counts[collective].planned_calls += 1
            self._counts[collective].planned_bytes += size_bytes

    def other(self, collective: str, size_bytes: int) -> None:
        """A call goes to the inner group."""
        with self._lock:
            self._counts[collective].other_calls += 1
            self._counts[collective].other_bytes += size_bytes

    def ended(self, collective: str, predicted: float, measured: float) -> None:
        """A planned call has ended well."""
        with self._lock:
            self._counts[collective].predicted_seconds += predicted
            self._counts[collective].measured_seconds += measured

    def document(self) -> dict[str, dict[str, Any]]:
        """What was counted, as plain data, by collective in alphabetical order."""
        with self._lock:
            return {collective: asdict(self._counts[collective]) for collective in sorted(self._counts)}
