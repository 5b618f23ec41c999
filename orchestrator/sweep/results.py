"""What a sweep leaves: results.csv, sweep.png, and best.yaml, which launches the winner again."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from orchestrator.recorders.style import LIGHT, save_png
from orchestrator.sweep.book import BEST, Book, Trial, best_of
from orchestrator.sweep.figure import sweep_figure
from orchestrator.sweep.plan import Plan
from orchestrator.words import loss_text

TABLE, FIGURE = "results.csv", "sweep.png"


def write_results(plan: Plan, book: Book) -> list[Path]:
    """The files, each whole or not at all; no best.yaml where no trial has finished."""
    best = best_of(book.trials)
    written = [_write(book.folder / TABLE, csv_text(book, [each.key for each in plan.space]))]
    save_png(sweep_figure(plan.space, book.trials, LIGHT), book.folder / FIGURE)
    written.append(book.folder / FIGURE)
    if best is not None:
        written.append(_write(book.folder / BEST, best_text(plan, best)))
    return written


def best_text(plan: Plan, best: Trial) -> str:
    """The winner's overrides as a YAML list, as `orchestrate run @best.yaml` reads it."""
    head = (
        f"# Trial {best.number + 1} of {plan.trials} by search={plan.search}: validation loss {loss_text(best.loss)}.\n"
        f"# Launch it again: orchestrate run @{BEST}\n"
    )
    return head + "".join(f"- {_quoted(each)}\n" for each in plan.overrides(best.values))


def csv_text(book: Book, keys: Sequence[str]) -> str:
    """A trial a row, every number whole."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["trial", *keys, "state", "steps", "validation_loss", "seconds", "folder", "reason"])
    for trial in book.trials:
        values = [trial.values[key] for key in keys]
        folder = book.folder_of(trial).relative_to(book.folder)
        loss = "" if trial.loss is None else repr(trial.loss)
        rows.writerow(
            [trial.number + 1, *values, trial.state, trial.steps, loss, trial.seconds, folder, trial.reason or ""]
        )
    return text.getvalue()


def _quoted(word: str) -> str:
    """In YAML's single quotes, within which nothing but a quote means anything."""
    return "'" + word.replace("'", "''") + "'"


def _write(path: Path, text: str) -> Path:
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_text(text, encoding="utf-8")
    return unfinished.replace(path)
