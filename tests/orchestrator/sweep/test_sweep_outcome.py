"""What is shown of a sweep while it goes on, and what it leaves: lines, table, CSV, figure."""

import csv
import io
from pathlib import Path

from rich.console import Console

from orchestrator.recorders.style import DARK, png
from orchestrator.sweep.book import Book, Trial, best_of
from orchestrator.sweep.figure import sweep_figure
from orchestrator.sweep.results import csv_text
from orchestrator.sweep.space import Dimension
from orchestrator.sweep.terminal import SweepTerminal, trial_table

SPACE = [Dimension("lr.rate", (), 1e-4, 1e-1, logarithmic=True), Dimension("optimizer", ("adamw", "sgd"))]
KEYS = [each.key for each in SPACE]
TRIALS = [
    Trial(0, {"lr.rate": 0.01, "optimizer": "adamw"}, "000-a", "FINISHED", 0.5, 40, 63.0),
    Trial(1, {"lr.rate": 0.02, "optimizer": "sgd"}, "001-b", "KILLED", 0.9, 5, 8.0, "the search ended it early"),
    Trial(2, {"lr.rate": 0.03, "optimizer": "sgd"}, "002-c", "FAILED", None, 0, 2.0, "[red]the data are gone, all"),
    Trial(3, {"lr.rate": 0.04, "optimizer": "adamw"}, "003-d", "FINISHED", 0.25, 40, 61.0),
    Trial(4, {"lr.rate": 0.05, "optimizer": "adamw"}, "004-e", "RUNNING", 0.7, 10),
]


def test_a_log_has_one_line_a_trial() -> None:
    text = io.StringIO()
    with SweepTerminal(KEYS, 5, [], Console(file=text, width=80)) as terminal:
        for trial in TRIALS:
            terminal.tell(trial)
    assert text.getvalue().splitlines() == [
        "trial 1 of 5  lr.rate=0.01 optimizer=adamw  validation loss 0.500  1:03",
        "trial 2 of 5  lr.rate=0.02 optimizer=sgd  ended early at step 5, validation loss 0.900  0:08",
        "trial 3 of 5  lr.rate=0.03 optimizer=sgd  failed: [red]the data are gone, all  0:02",
        "trial 4 of 5  lr.rate=0.04 optimizer=adamw  validation loss 0.250  1:01",
    ]


def test_a_terminal_has_a_table_that_lives() -> None:
    text = io.StringIO()
    console = Console(file=text, width=100, force_terminal=True)
    with SweepTerminal(KEYS, 5, TRIALS[:4], console) as terminal:
        terminal.tell(TRIALS[4])
    assert "running" in text.getvalue()
    assert "★" in text.getvalue()


def test_the_best_one_stands_out_in_the_table() -> None:
    text = io.StringIO()
    Console(file=text, width=100).print(trial_table(TRIALS, KEYS, best_of(TRIALS)))
    rows = text.getvalue().splitlines()
    assert [("★" in row) for row in rows] == [False, False, False, False, True, False]
    assert rows[2].split() == ["2", "0.02", "sgd", "killed", "5", "0.900", "0:08"]


def test_the_table_as_a_file_holds_every_trial_whole(tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text(Book(tmp_path, {}, TRIALS), KEYS))))
    assert [row["state"] for row in rows] == [trial.state for trial in TRIALS]
    assert rows[2]["reason"] == "[red]the data are gone, all"
    assert rows[2]["validation_loss"] == ""
    assert [float(row["lr.rate"]) for row in rows] == [trial.values["lr.rate"] for trial in TRIALS]
    assert rows[3]["folder"] == "trials/003-d"


def test_a_figure_needs_no_finished_trial() -> None:
    for trials in (TRIALS, TRIALS[1:3], []):
        assert png(sweep_figure(SPACE, trials, DARK)).startswith(b"\x89PNG")
