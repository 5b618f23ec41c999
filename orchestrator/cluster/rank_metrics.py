"""What one rank reads, on Ray's metrics page: only it knows its own loss, pace and collectives."""

from collections.abc import Mapping, Sequence

from orchestrator.monitoring import panels
from orchestrator.monitoring.readings import Reading, of_communication
from orchestrator.recorders.ray_metrics import Gauges


class RankMetrics:
    """Gauges of one rank of a job, set after every call."""

    def __init__(self, job: str, rank: int) -> None:
        self._gauges = Gauges(job, str(rank))

    def note(self, losses: Sequence[float], seconds: float, communication: Mapping[str, Mapping[str, float]]) -> None:
        """Of the steps just taken, and of all that the rank's group has moved by collective so far."""
        readings: list[Reading] = [*of_communication(communication)]
        if losses:
            readings += [(panels.RANK_LOSS, {}, losses[-1]), (panels.RANK_STEP_SECONDS, {}, seconds / len(losses))]
        self._gauges.set(readings)
