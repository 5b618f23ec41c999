"""A second run of the same work probes less, and goes on after a kill as if nothing had been, its teacher gone."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from commands import SMALL, killed_when, orchestrate, run_folder

from orchestrator.events import RunStarted
from orchestrator.journal_file import read_beginning, read_journal

pytestmark = pytest.mark.slow


def run(place: Path, name: str, *more: str) -> dict[str, Any]:
    ended = orchestrate(place, "run", *SMALL, "past=true", *more, run_folder(place / "outputs", name))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    result: dict[str, Any] = json.loads((place / "outputs" / name / "result.json").read_text())
    return result | {"said": " ".join(ended.stdout.split())}


def past_of(folder: Path) -> str | None:
    began = read_beginning(folder / "journal.jsonl")
    assert isinstance(began, RunStarted)
    return began.past


def test_the_second_run_learns_from_the_first(tmp_path: Path) -> None:
    outputs = tmp_path / "outputs"
    first = run(tmp_path, "first")
    second = run(tmp_path, "second", "seed=1")
    anew = run(tmp_path, "anew", "seed=1", "past=false")
    assert [past_of(outputs / name) for name in ("first", "second", "anew")] == [None, str(outputs / "first"), None]
    assert "as " + str(outputs / "first") + " chose for the same work" in second["said"]
    assert second["probe_steps"] < anew["probe_steps"]
    assert second["validation_loss"] < 1.1 * anew["validation_loss"]
    assert first["said"].count("past=false") == 0

    def probed() -> bool:
        journal = outputs / "killed" / "journal.jsonl"
        return journal.exists() and any(type(event).__name__ == "ProbeRan" for event in read_journal(journal))

    shutil.rmtree(outputs / "anew")
    shutil.move(outputs / "second", tmp_path / "second")  # so that it learns from the first, as that one did
    arguments = ["run", *SMALL, "past=true", "seed=1", run_folder(outputs, "killed")]
    killed_when(tmp_path, arguments, probed)
    shutil.rmtree(outputs / "first")
    ended = orchestrate(tmp_path, "resume", str(outputs / "killed"))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    resumed = json.loads((outputs / "killed" / "result.json").read_text())
    for key in ("weights_sha256", "probe_steps", "lr_by_step"):
        assert resumed[key] == second[key], key
