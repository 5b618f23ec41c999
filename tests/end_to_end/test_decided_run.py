"""`decide=all` from the command line: one table, one decision each, and a killed run goes on with what it decided."""

import json
from pathlib import Path

import pytest
from commands import killed_when, orchestrate, run_folder

from orchestrator.decide.words import AS_GIVEN, chosen_text
from orchestrator.events import Decided, SnapshotSaved
from orchestrator.journal_file import read_journal

RUN = ["task=tabular", "task.data=digits", "steps=2000", "batch_size=4", "lr=constant", "tracking=none"]
MEASURED = [*RUN, "decide=all", "decide.seconds=60"]


def decisions(folder: Path) -> list[Decided]:
    journal = folder / "journal.jsonl"
    return [event for event in read_journal(journal) if isinstance(event, Decided)] if journal.exists() else []


@pytest.mark.slow
def test_a_killed_run_ends_as_one_that_was_given_what_it_decided(tmp_path: Path) -> None:
    folder = tmp_path / "run"

    def saved() -> bool:
        journal = folder / "journal.jsonl"
        return journal.exists() and any(isinstance(event, SnapshotSaved) for event in read_journal(journal))

    killed_when(tmp_path, ["run", *MEASURED, run_folder(tmp_path, "run")], saved)
    made = decisions(folder)
    assert [event.what for event in made] == ["communication", "batch", "overlap", "rate"]
    resumed = orchestrate(tmp_path, "resume", str(folder))
    assert resumed.returncode == 0, resumed.stderr
    assert decisions(folder) == made
    result = json.loads((folder / "result.json").read_text())
    assert [each["what"] for each in result["decided"]] == [event.what for event in made]
    given = [word for event in made for word in chosen_text(event).split() if chosen_text(event) != AS_GIVEN]
    ended = orchestrate(tmp_path, "run", *RUN, *given, run_folder(tmp_path, "given"))
    assert ended.returncode == 0, ended.stderr
    assert json.loads((tmp_path / "given" / "result.json").read_text())["weights_sha256"] == result["weights_sha256"]
    assert "<h2>Decided beforehand</h2>" in (folder / "report.html").read_text()


def test_a_dry_run_says_what_would_be_decided(tmp_path: Path) -> None:
    ended = orchestrate(tmp_path, "run", *MEASURED, "dry_run=true")
    assert ended.returncode == 0, ended.stderr
    assert "communication, batch, overlap, rate, by trial steps before the first one" in " ".join(ended.stdout.split())


def test_a_wrong_word_is_a_sentence(tmp_path: Path) -> None:
    ended = orchestrate(tmp_path, "run", *RUN, "decide.overlap=perhaps", "dry_run=true")
    assert ended.returncode == 2
    assert "decide.overlap is perhaps, and must be given or measured" in ended.stderr
