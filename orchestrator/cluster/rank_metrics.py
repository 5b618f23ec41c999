"""What one rank reads, on Ray's metrics page: only it knows its own loss, pace and collectives."""

from collections.abc import Sequence
from typing import Any

from orchestrator.cluster.gauges import Gauges
from orchestrator.monitoring import panels
from orchestrator.monitoring.readings import Reading, of_communication


class RankMetrics:
    """Gauges of one rank of a job, set after every call."""

    def __init__(self, job: str, rank: int) -> None:
        self._gauges = Gauges(job, str(rank))

    def note(self, losses: Sequence[float], seconds: float, communication: dict[str, Any] | None) -> None:
        """Of the steps just taken, and of what the rank's group has moved so far, as `Worker.communication` has it."""
        readings: list[Reading] = [*of_communication(communication["rows"])] if communication else []
        if losses:
            readings += [(panels.RANK_LOSS, {}, losses[-1]), (panels.RANK_STEP_SECONDS, {}, seconds / len(losses))]
        self._gauges.set(readings)
