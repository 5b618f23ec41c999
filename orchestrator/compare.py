"""Runs side by side: a table and one figure of their losses and rates, from what they left in their folders."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from orchestrator.errors import UserError
from orchestrator.events import Json
from orchestrator.history import History, history
from orchestrator.journal_file import JOURNAL, read_journal
from orchestrator.recorders.style import (
    LIGHT,
    Figure,
    Palette,
    cut_decades,
    dress,
    legend,
    logarithmic,
    new_figure,
    save_png,
)
from orchestrator.run_folder import read_result
from orchestrator.summary import Summary, summarise
from orchestrator.words import clock_text, loss_text, policy_name, task_name

_FIGURE = "compare.png"
_WIDE = 200  # columns of the table as a file


@dataclass(frozen=True)
class Run:
    """One run folder, read."""

    name: str  # the part of its folder's path that tells it apart
    story: History
    summary: Summary
    result: Json  # of result.json or, for a run that did not get that far, empty

    @property
    def config(self) -> Json:
        """The configuration it was started with."""
        return self.story.started.config if self.story.started else {}

    @property
    def state(self) -> str:
        """FINISHED, FAILED, KILLED, or UNFINISHED where the journal has no end."""
        return self.story.ended.state if self.story.ended else "UNFINISHED"


def compare(folders: Sequence[Path], outputs: Path = Path("outputs"), console: Console | None = None) -> Path:
    """Print the table, and write it and the figure; returns the figure's path.

    Without folders, every run under `outputs` takes part. UserError if there is none or one is no run folder.
    """
    console = console or Console(highlight=False)
    runs = read_runs(folders or find_runs(outputs))
    table = comparison_table(runs)
    console.print(table)
    path = outputs / _FIGURE if outputs.is_dir() else Path(_FIGURE)
    with path.with_suffix(".txt").open("w", encoding="utf-8") as file:
        Console(file=file, width=_WIDE).print(table)
    save_png(comparison_figure(runs, LIGHT), path)
    console.print(f"figure: {path}", soft_wrap=True)
    return path


def find_runs(outputs: Path) -> list[Path]:
    """Every run folder under `outputs`, in the order of their names."""
    folders = sorted(path.parent for path in outputs.rglob(JOURNAL))
    if not folders:
        raise UserError(f"{outputs} holds no run yet: name run folders, or start one with `orchestrate run`")
    return folders


def read_runs(folders: Sequence[Path]) -> list[Run]:
    """Journal and result of each run folder. UserError if one is none."""
    common = Path(os.path.commonpath([folder.absolute().parent for folder in folders]))
    return [_read(folder, str(folder.absolute().relative_to(common))) for folder in folders]


def _read(folder: Path, name: str) -> Run:
    events = read_journal(folder / JOURNAL)
    return Run(name, history(events), summarise(events), read_result(folder))


def comparison_table(runs: Sequence[Run]) -> Table:
    """One run a row. Columns in which every run has the same, or none has anything, are left out."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bright_black", pad_edge=False)
    measured = sorted({metric for run in runs for metric in run.summary["test"]} - {"loss"})
    columns = {**_COLUMNS, **{metric: _test(metric) for metric in measured}}
    texts = {title: [column(run) for run in runs] for title, column in columns.items()}
    shown = {title: cells for title, cells in texts.items() if title in _ALWAYS or len(set(cells)) > 1}
    for title in shown:
        table.add_column(title, justify="left" if title in _WORDS else "right", overflow="fold")
    for cells in zip(*shown.values(), strict=True):
        table.add_row(*cells)
    return table


def comparison_figure(runs: Sequence[Run], palette: Palette) -> Figure:
    """Learning rate and validation loss against all steps taken, probes included."""
    figure = new_figure(palette, 10, 5.6, "Runs side by side")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[2, 3])
    dress(above, palette, y_label="learning rate")
    dress(below, palette, "steps taken, those of the search included", "validation loss")
    logarithmic(above, "y")
    for index, run in enumerate(runs):
        colour = palette.runs[index % len(palette.runs)]
        for segment in run.story.segments:
            if segment.kind == "train":
                above.plot(range(segment.start + 1, segment.end + 1), segment.rates, color=colour, linewidth=1.8)
        below.plot(*_losses(run), color=colour, linewidth=1.6, marker="o", markersize=3, label=_label(run))
    cut_decades(above)
    legend(below, palette, loc="upper right")
    figure.align_ylabels([above, below])
    return figure


def _losses(run: Run) -> tuple[list[int], list[float]]:
    validated = [each for each in run.story.validations if each.split == "validation"]
    return [run.story.total_steps(each.step) for each in validated], [each.metrics["loss"] for each in validated]


def _label(run: Run) -> str:
    return f"{policy_name(run.config)}, seed {run.config.get('seed')} ({run.name})"


def _seconds(run: Run) -> str:
    wall = run.result.get("wall_seconds")
    return clock_text(wall) if wall is not None else "–"


def _plan(run: Run) -> str:
    plan: dict[str, Any] = run.result.get("plan") or {}
    return str(plan.get("source", "–"))


def _test(metric: str) -> Callable[[Run], str]:
    return lambda run: loss_text(run.summary["test"].get(metric))


_COLUMNS: dict[str, Callable[[Run], str]] = {
    "run": lambda run: run.name,
    "task": lambda run: task_name(run.config),
    "lr": lambda run: policy_name(run.config),
    "seed": lambda run: str(run.config.get("seed")),
    "state": lambda run: run.state,
    "plan": _plan,
    "steps": lambda run: f"{run.summary['train_steps']:,}",
    "search": lambda run: f"{run.summary['probe_steps']:,}",
    "time": _seconds,
    "train": lambda run: loss_text(run.summary["train_loss"]),
    "val": lambda run: loss_text(run.summary["validation_loss"]),
    "test": _test("loss"),
}
_WORDS = ("run", "task", "lr", "state", "plan")
_ALWAYS = ("run", "lr", "steps", "search", "time", "train", "val", "test")
