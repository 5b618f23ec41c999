"""What one decision came to, before its cost is known."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.events import Decided


@dataclass(frozen=True)
class Finding:
    """As `orchestrator.events.Decided`, without its name and its cost."""

    chosen: Mapping[str, Any]
    evidence: Mapping[str, float] = field(default_factory=dict)
    gain: float = 1.0
    reason: str = ""

    def decided(self, what: str, seconds: float) -> Decided:
        """The event."""
        return Decided(what, dict(self.chosen), dict(self.evidence), round(seconds, 3), self.gain, self.reason)


def nothing(reason: str, chosen: Mapping[str, Any] | None = None) -> Finding:
    """Nothing was measured, or nothing gained."""
    return Finding(chosen or {}, reason=reason)
