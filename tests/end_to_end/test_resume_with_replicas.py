"""A run whose probes are made side by side, killed in the middle of its search, ends as one that did all in turn."""

import json
from pathlib import Path
from typing import Any

import pytest
from commands import SMALL, killed_when, orchestrate, run_folder

from orchestrator.events import Event, ProbeRan
from orchestrator.journal_file import read_journal

pytestmark = pytest.mark.slow
SAME = (
    "weights_sha256",
    "lr_by_step",
    "settings",
    "train_steps",
    "probe_steps",
    "train_loss",
    "validation_loss",
    "test",
)


def result_of(folder: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return result


def probes(folder: Path) -> list[Event]:
    journal = folder / "journal.jsonl"
    return [event for event in read_journal(journal) if isinstance(event, ProbeRan)] if journal.exists() else []


@pytest.mark.parametrize("more", [[], ["steps=1600", "lr.also=[weight_decay,batch_size]", "optimizer.weight_decay=1"]])
def test_killed_and_resumed(more: list[str], tmp_path: Path) -> None:
    one_worker = [*SMALL, "cluster.workers=1", *more]
    in_turn = orchestrate(tmp_path, "run", *one_worker, run_folder(tmp_path, "in_turn"))
    assert in_turn.returncode == 0, in_turn.stderr
    folder = tmp_path / "side_by_side"
    beside = ["run", *one_worker, "cluster.probe_replicas=1", run_folder(tmp_path, folder.name)]
    killed_when(tmp_path, beside, lambda: len(probes(folder)) >= 4 + 3 * len(more))
    resumed = orchestrate(tmp_path, "resume", str(folder))
    assert resumed.returncode == 0, resumed.stderr
    wanted, found = result_of(tmp_path / "in_turn"), result_of(folder)
    assert {key: found[key] for key in SAME} == {key: wanted[key] for key in SAME}
    assert found["worker_seconds"] == 2 * found["wall_seconds"]
    assert len(probes(folder)) == len(probes(tmp_path / "in_turn"))  # none is made twice
