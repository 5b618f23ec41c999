"""A killed run is taken up by `orchestrate resume` and ends with the weights of an undisturbed one."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from commands import SMALL, killed_when, orchestrate, run_folder

from orchestrator.journal_file import read_journal

pytestmark = pytest.mark.slow


def result_of(folder: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return result


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    place = tmp_path_factory.mktemp("undisturbed")
    ended = orchestrate(place, "run", *SMALL, run_folder(place, "run"))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return result_of(place / "run")


def told(folder: Path, event: str) -> int:
    """How often the journal tells of an event so far."""
    journal = folder / "journal.jsonl"
    return sum(type(each).__name__ == event for each in read_journal(journal)) if journal.exists() else 0


@pytest.mark.parametrize(
    ("event", "times"),
    [("ProbeRan", 2), ("ArmTakenUp", 1), ("SnapshotSaved", 5)],
)
def test_killed_and_resumed(event: str, times: int, undisturbed: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "run"
    killed_when(tmp_path, ["run", *SMALL, run_folder(tmp_path, "run")], lambda: told(folder, event) >= times)
    probes_before = told(folder, "ProbeRan")
    ended = orchestrate(tmp_path, "resume", str(folder))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    result = result_of(folder)
    for key in ("weights_sha256", "lr_by_step", "train_steps", "probe_steps", "train_loss", "validation_loss", "test"):
        assert result[key] == undisturbed[key], key
    assert probes_before <= told(folder, "ProbeRan") == 7  # five arms, two of which go on: none repeated


@pytest.mark.parametrize("whole_group", [False, True], ids=["alone", "with its Ray"])
def test_a_run_that_is_told_to_stop_says_so_and_goes_on_later(
    whole_group: bool, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    arguments = ["run", *SMALL, run_folder(tmp_path, "run")]
    status = killed_when(
        tmp_path, arguments, lambda: told(folder, "SnapshotSaved") >= 1, signal.SIGTERM, whole_group=whole_group
    )
    assert status == 128 + signal.SIGTERM
    assert result_of(folder)["state"] == "KILLED"
    folder = folder.rename(tmp_path / "moved")
    resumed = orchestrate(tmp_path, "resume", folder.name)
    assert resumed.returncode == 0, resumed.stderr
    assert f"evaluate={folder}\n" in resumed.stdout
    assert result_of(folder)["weights_sha256"] == undisturbed["weights_sha256"]


def test_a_run_folder_cannot_choose_which_code_runs(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    arguments = ["run", *SMALL, run_folder(tmp_path, "run")]
    killed_when(tmp_path, arguments, lambda: told(folder, "SnapshotSaved") >= 1)
    journal = folder / "journal.jsonl"
    journal.write_text(journal.read_text().replace("schedulefree.AdamWScheduleFree", "subprocess.run"))
    ended = orchestrate(tmp_path, "resume", str(folder))
    assert ended.returncode == 2
    assert "optimizer._target_=subprocess.run" in ended.stderr
