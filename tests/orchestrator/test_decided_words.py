"""What the terminal, the progress line, MLflow, result and report say of decisions."""

import io
from pathlib import Path

from rich.console import Console

from orchestrator.decide.words import chosen_text, decided_result, decided_row, with_cost
from orchestrator.events import Decided, RunStarted, event_from_json, event_json
from orchestrator.history import history
from orchestrator.recorders.mlflow.operations import Operations
from orchestrator.recorders.report import write_report_of
from orchestrator.recorders.terminal import TerminalRecorder

NOTHING = Decided("communication", {}, {}, 0.0, 1.0, "all workers stand on one machine")
BATCH = Decided(
    what="batch",
    chosen={"batch_size": 16, "steps": 400},
    evidence={"noise_scale": 118.2, "train_steps": 400, "probe_steps": 60},
    seconds=2.13,
    gain=1.314,
    reason="the noise scale is 118 samples: 400 steps of 31 ms come as far as 600 of 27 ms",
)
STARTED = RunStarted("run", ".", {"task": {"_target_": "tasks.Own"}}, {"train_steps": 600, "probe_steps": 75}, 0.0)


def test_a_row_and_the_overrides_that_would_have_said_the_same() -> None:
    assert decided_row(BATCH) == ("batch", "2.1 s", "1.31 ×", "batch_size=16 steps=400")
    assert decided_row(NOTHING) == ("communication", "0.00 s", "–", "as given")
    threshold = {"communication.method": "planned", "communication.threshold_bytes": None}
    assert chosen_text(Decided("communication", threshold, {}, 0.0, 1.0, "")) == (
        "communication.method=planned communication.threshold_bytes=null"
    )


def test_an_event_goes_through_the_journal() -> None:
    assert event_from_json(event_json(BATCH)) == BATCH
    assert history([STARTED, NOTHING, BATCH]).decided == [NOTHING, BATCH]


def test_the_terminal_shows_one_table() -> None:
    output = io.StringIO()
    recorder = TerminalRecorder(Console(file=output, highlight=False))
    for event in (STARTED, NOTHING, BATCH):
        recorder.record(event)
    recorder.close()
    table = output.getvalue()[output.getvalue().index("decision") :].splitlines()
    assert table == [
        "decision          cost     gain  chosen",
        "communication   0.00 s        –  as given",
        "  all workers stand on one machine",
        "batch            2.1 s   1.31 ×  batch_size=16 steps=400",
        f"  {BATCH.reason}",
    ]


def test_the_steps_ahead_are_those_decided() -> None:
    assert with_cost(STARTED, NOTHING) == STARTED
    assert with_cost(STARTED, BATCH).cost == {"train_steps": 400, "probe_steps": 60}


def test_mlflow_result_and_report_have_it(tmp_path: Path) -> None:
    tags, metrics = Operations().of(BATCH)
    assert tags["values"] == {"decided.batch": "batch_size=16 steps=400"}
    points = {key: value for key, value, *_ in metrics["values"]}
    assert points["decided/batch/gain"] == 1.314
    assert points["decided/batch/noise_scale"] == 118.2
    assert decided_result(BATCH)["chosen"] == {"batch_size": 16, "steps": 400}
    page = write_report_of([STARTED, NOTHING, BATCH], tmp_path).read_text()
    assert "<h2>Decided beforehand</h2>" in page
    assert "batch_size=16 steps=400" in page
    assert "Decided beforehand" not in write_report_of([STARTED], tmp_path).read_text()
