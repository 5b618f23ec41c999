"""A run's journal as series over time, thinned so that a page stays light however long the run was."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from orchestrator.events import RunEnded, RunStarted
from orchestrator.journal_file import JOURNAL, Entry, read_entries
from orchestrator.monitoring.panels import PANELS, Metric, Panel
from orchestrator.monitoring.readings import Readings
from orchestrator.words import policy_name, task_name

Json = dict[str, Any]
Point = tuple[float, float]  # seconds the run had been worked on, value

MOST_POINTS = 500  # a series; more than a chart's pixels


def document(folder: Path) -> Json:
    """What the watch page draws: the run's name and state, and each panel's series. UserError: no run folder."""
    entries = read_entries(folder / JOURNAL)
    series = series_of(entries)
    started = next((entry.event for entry in entries if isinstance(entry.event, RunStarted)), None)
    config = started.config if started else {}
    return {
        "title": f"{task_name(config)}, {policy_name(config)}, seed {config.get('seed')}" if started else folder.name,
        "run": started.run_id if started else folder.name,
        "state": next((entry.event.state for entry in entries if isinstance(entry.event, RunEnded)), "RUNNING"),
        "seconds": entries[-1].at if entries else 0.0,
        "panels": [each for panel in PANELS if (each := _panel(panel, series))["series"]],
    }


def series_of(entries: Iterable[Entry]) -> dict[Metric, dict[str, list[Point]]]:
    """By metric, and within it by its tags in words, what it read at which time."""
    readings = Readings()
    found: dict[Metric, dict[str, list[Point]]] = {}
    for entry in entries:
        for metric, tags, value in readings.note(entry.event, entry.at):
            words = " ".join((metric.title, *tags.values()))
            found.setdefault(metric, {}).setdefault(words, []).append((entry.at, value))
    return found


def thinned(points: list[Point], most: int = MOST_POINTS) -> list[Point]:
    """At most `most` points, evenly out of all of them, the last one among them."""
    if len(points) <= most:
        return points
    return [points[round(at * (len(points) - 1) / (most - 1))] for at in range(most)]


def _panel(panel: Panel, series: dict[Metric, dict[str, list[Point]]]) -> Json:
    first = panel.metrics[0]
    return {
        "title": panel.title,
        "unit": first.unit,
        "logarithmic": first.logarithmic,
        "meaning": "; ".join(f"{metric.title}: {metric.meaning}" for metric in panel.metrics),
        "series": [
            {"name": words, "points": thinned(points), "scattered": metric.scattered}
            for metric in panel.metrics
            for words, points in series.get(metric, {}).items()
        ],
    }
