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

DIGITS = [*SMALL, "task.data=digits", "past=true"]


def run(place: Path, name: str, *more: str) -> dict[str, Any]:
    ended = orchestrate(place, "run", *DIGITS, *more, run_folder(place / "outputs", name))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    result: dict[str, Any] = json.loads((place / "outputs" / name / "result.json").read_text())
    return result | {"said": " ".join(ended.stdout.split())}


def past_of(folder: Path) -> str | None:
    began = read_beginning(folder / "journal.jsonl")
    assert isinstance(began, RunStarted)
    return began.past


def rate_of(result: dict[str, Any]) -> float:
    return max(rate for _, rate in result["lr_by_step"])


def test_the_second_run_learns_from_the_first(tmp_path: Path) -> None:
    outputs = tmp_path / "outputs"
    first = run(tmp_path, "first")
    second = run(tmp_path, "second", "seed=1")
    assert [past_of(outputs / name) for name in ("first", "second")] == [None, str(outputs / "first")]
    assert "as " + str(outputs / "first") + " chose for the same work" in second["said"]
    assert second["probe_steps"] < first["probe_steps"]
    assert 1 / 3 < rate_of(second) / rate_of(first) < 3
    assert max(first["test"]["loss"], second["test"]["loss"]) < 0.3  # a single run's loss differs more by seed

    def probed() -> bool:
        journal = outputs / "killed" / "journal.jsonl"
        return journal.exists() and any(type(event).__name__ == "ProbeRan" for event in read_journal(journal))

    shutil.move(outputs / "second", tmp_path / "second")  # so that it learns from the first, as that one did
    arguments = ["run", *DIGITS, "seed=1", run_folder(outputs, "killed")]
    killed_when(tmp_path, arguments, probed)
    shutil.rmtree(outputs / "first")
    ended = orchestrate(tmp_path, "resume", str(outputs / "killed"))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    resumed = json.loads((outputs / "killed" / "result.json").read_text())
    for key in ("weights_sha256", "probe_steps", "lr_by_step"):
        assert resumed[key] == second[key], key
