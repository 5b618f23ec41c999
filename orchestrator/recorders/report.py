"""report.html and the figures of a run, made from its events alone: one file that needs no network, light or dark."""

import base64
import os
from collections.abc import Sequence
from pathlib import Path

from orchestrator.events import Event, RunEnded
from orchestrator.history import History, history
from orchestrator.journal_file import JOURNAL, read_journal
from orchestrator.recorders.figures import cost, rates_and_losses, searches
from orchestrator.recorders.page import page
from orchestrator.recorders.style import DARK, LIGHT, Palette, png
from orchestrator.recorders.timeline_figure import timelines
from orchestrator.run_folder import require_no_links
from orchestrator.summary import Summary, summarise

REPORT = "report.html"
FIGURES = "figures"


class ReportRecorder:
    """Writes the report when the run ends. `earlier` are the events of the processes before a resume."""

    def __init__(self, folder: Path, earlier: Sequence[Event] = ()) -> None:
        self._folder = folder
        self._events = list(earlier)

    def record(self, event: Event) -> None:
        """Collect; at the end, write."""
        self._events.append(event)
        if isinstance(event, RunEnded):
            write_report_of(self._events, self._folder)

    def close(self) -> None:
        """Nothing is left to write."""


def write_report(folder: Path) -> Path:
    """The report of a run folder, from its journal; returns its path. UserError if it is no run folder."""
    require_no_links(folder)
    return write_report_of(read_journal(folder / JOURNAL), folder)


def write_report_of(events: Sequence[Event], folder: Path) -> Path:
    """The report of these events in `folder`: report.html, and each figure as a PNG file under figures/."""
    story, summary = history(events), summarise(events)
    light, dark = _figures(story, summary, LIGHT), _figures(story, summary, DARK)
    (folder / FIGURES).mkdir(parents=True, exist_ok=True)
    for name, image in light.items():
        (folder / FIGURES / f"{name}.png").write_bytes(image)
    pictures = {name: _picture(name, light[name], dark[name]) for name in light}
    return _write(folder / REPORT, page(story, summary, pictures))


def _figures(story: History, summary: Summary, palette: Palette) -> dict[str, bytes]:
    figures = {
        "rates_and_losses": rates_and_losses(story, palette),
        "searches": searches(story, palette),
        "cost": cost(summary, palette),
        "overlap": timelines(story.overlap, palette) if story.overlap else None,
    }
    return {name: png(figure) for name, figure in figures.items() if figure is not None}


def _picture(name: str, light: bytes, dark: bytes) -> str:
    alternative = name.replace("_", " ")
    return (
        f'<picture><source media="(prefers-color-scheme: dark)" srcset="{_data_uri(dark)}">'
        f'<img alt="{alternative}" src="{_data_uri(light)}"></picture>'
    )


def _data_uri(image: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(image).decode()


def _write(path: Path, text: str) -> Path:
    """All of it or nothing: someone may have the old report open."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    return temporary.replace(path)
