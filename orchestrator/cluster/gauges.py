"""Monitoring's metrics as gauges on Ray's own metrics page, tagged by job and rank."""

from collections.abc import Iterable
from typing import Any

from orchestrator.monitoring.panels import PREFIX
from orchestrator.monitoring.readings import Reading


class Gauges:
    """Of one job and rank, made when they are first set. Only where this process is connected to Ray.

    Ray forgets a gauge that has not been set for a while, so that all are set whenever one is.
    """

    def __init__(self, job: str, rank: str) -> None:
        self._tags = {"job_name": job, "rank": rank}
        self._gauges: dict[str, Any] = {}  # a gauge lives as long as somebody keeps it
        self._values: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}  # by metric and tags

    def set(self, readings: Iterable[Reading]) -> None:
        """Show these values from now on."""
        from ray.util.metrics import Gauge

        for metric, tags, value in readings:
            if metric.name not in self._gauges:
                keys = (*self._tags, *metric.tags)
                self._gauges[metric.name] = Gauge(PREFIX + metric.name, metric.meaning, keys)
            self._values[metric.name, tuple(tags.items())] = value
        for (name, series), value in self._values.items():
            self._gauges[name].set(value, {**self._tags, **dict(series)})
