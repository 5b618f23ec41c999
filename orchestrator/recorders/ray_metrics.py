"""Each metric of monitoring on Ray's own metrics page, tagged by job and rank, for Prometheus and the Ray dashboard."""

from collections.abc import Iterable
from time import monotonic

from orchestrator.cluster.gauges import Gauges
from orchestrator.events import Event, JobReady, RunEnded, RunStarted
from orchestrator.monitoring.readings import Reading, Readings

ALL_RANKS = "all"


class RayMetricsRecorder:
    """Sets gauges from the driver while it is connected to Ray. `seconds`: how long the run had been worked on."""

    def __init__(self, earlier: Iterable[Event], seconds: float = 0.0) -> None:
        self._readings = Readings()
        self._began = monotonic() - seconds
        self._job = ""
        self._gauges: Gauges | None = None
        self._waiting: list[Reading] = []  # for Ray
        for event in earlier:
            self._waiting += self._note(event)

    def record(self, event: Event) -> None:
        """Set what has changed."""
        self._waiting += self._note(event)
        if isinstance(event, JobReady):
            self._gauges = Gauges(self._job, ALL_RANKS)
        if isinstance(event, RunEnded):
            self._gauges = None  # Ray is gone
        if self._gauges is not None:
            self._gauges.set(self._waiting)
            self._waiting = []

    def close(self) -> None:
        """Gauges of a driver that is gone age out by themselves."""

    def _note(self, event: Event) -> list[Reading]:
        if isinstance(event, RunStarted):
            self._job = event.run_id
        return self._readings.note(event, monotonic() - self._began)
