"""`overlap=searched` from the command line: the same curve as without, also after a kill, and what is said of it."""

import json
from pathlib import Path
from typing import Any

import pytest
from commands import killed_when, orchestrate, run_folder

from orchestrator.events import OverlapPlanned, SnapshotSaved, StepsTrained
from orchestrator.journal_file import read_journal

RUN = ["task=tabular", "size=tiny", "steps=400", "lr=constant", "optimizer=adamw", "clip=null"]


def losses(folder: Path) -> dict[int, float]:
    """Training losses by step; the later of two for the same step."""
    trained = [event for event in read_journal(folder / "journal.jsonl") if isinstance(event, StepsTrained)]
    return {event.first_step + index: loss for event in trained for index, loss in enumerate(event.losses)}


def result_of(folder: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return result


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("usual")
    ended = orchestrate(place, "run", *RUN, "tracking=none", "overlap=off", run_folder(place, "run"))
    assert ended.returncode == 0, ended.stderr
    return place / "run"


@pytest.mark.slow
def test_the_curve_is_that_of_plain_training_and_the_pipeline_is_recorded(usual: Path, tmp_path: Path) -> None:
    from mlflow import MlflowClient

    arguments = ["overlap=searched", "tracking=sqlite", run_folder(tmp_path, "run")]
    ended = orchestrate(tmp_path, "run", *RUN, *arguments)
    assert ended.returncode == 0, ended.stderr
    assert "as fast as with nothing overlapped" in ended.stdout
    folder = tmp_path / "run"
    assert losses(folder) == losses(usual)
    result = result_of(folder)
    assert result["weights_sha256"] == result_of(usual)["weights_sha256"]
    assert 0 < result["overlap"]["measured_seconds"] <= result["overlap"]["serial_seconds"]
    assert result_of(usual)["overlap"] is None
    assert "<h2>Overlap</h2>" in (folder / "report.html").read_text()
    metrics = MlflowClient(f"sqlite:///{tmp_path}/outputs/mlflow.db").get_run(result["mlflow_run_id"]).data.metrics
    assert metrics["overlap_measured_seconds"] == result["overlap"]["measured_seconds"]
    assert metrics["overlap_serial_seconds"] == result["overlap"]["serial_seconds"]


@pytest.mark.slow
def test_a_killed_run_goes_on_with_the_pipeline_that_it_has(usual: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    journal = folder / "journal.jsonl"

    def saved() -> bool:
        return journal.exists() and any(isinstance(event, SnapshotSaved) for event in read_journal(journal))

    killed_when(tmp_path, ["run", *RUN, "tracking=none", "overlap=searched", run_folder(tmp_path, "run")], saved)
    ended = orchestrate(tmp_path, "resume", str(folder))
    assert ended.returncode == 0, ended.stderr
    assert sum(isinstance(event, OverlapPlanned) for event in read_journal(journal)) == 1
    assert losses(folder) == losses(usual)
    assert result_of(folder)["weights_sha256"] == result_of(usual)["weights_sha256"]


@pytest.mark.parametrize(("workers", "words"), [(2, "searched by some 60 trial steps"), (1, "has nothing to hide")])
def test_a_dry_run_says_what_will_be_searched(workers: int, words: str, tmp_path: Path) -> None:
    arguments = ["overlap=searched", f"cluster.workers={workers}", "tracking=none", "dry_run=true"]
    ended = orchestrate(tmp_path, "run", *RUN, *arguments)
    assert ended.returncode == 0, ended.stderr
    assert words in " ".join(ended.stdout.split())


def test_a_mode_that_there_is_not_is_a_sentence(tmp_path: Path) -> None:
    ended = orchestrate(tmp_path, "run", *RUN, "overlap.mode=some", "tracking=none", "dry_run=true")
    assert ended.returncode == 2
    assert "overlap.mode is some, and must be off or searched" in ended.stderr
