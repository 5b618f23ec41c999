"""A mixture of experts learns real text on several workers; tokens travel by plan, and the run tells at what cost."""

import json
from pathlib import Path
from typing import Any

import pytest
from commands import killed_when, orchestrate, run_folder

from orchestrator.events import SnapshotSaved
from orchestrator.journal_file import read_journal

LINKS = "intra_bandwidth:10,nic_bandwidth:1"
SHORT = [
    "task=moe_language_model", "model.width=32", "model.heads=2", "model.experts=6", "batch_size=16", "steps=30",
    "lr=constant", "lr.rate=0.01", "lr.stages=3", "tracking=none",
]  # fmt: skip
BY_PLAN = {
    2: ["cluster.workers=2", f"task.cluster={{servers:2,gpus_per_server:1,{LINKS}}}"],
    4: ["cluster.workers=4", f"task.cluster={{servers:2,gpus_per_server:2,{LINKS}}}"],
}
LOGGED = ("expert_skew", "rank_skew", "balance_loss", "dispatched_bytes", "plan_seconds", "transfer_seconds")


def run(place: Path, name: str, *overrides: str) -> dict[str, Any]:
    ended = orchestrate(place, "run", *SHORT, *overrides, run_folder(place, name), timeout=900)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    result: dict[str, Any] = json.loads((place / name / "result.json").read_text())
    return result


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2, 4])
def test_it_learns_and_mlflow_knows_skew_and_times(workers: int, tmp_path: Path) -> None:
    from mlflow import MlflowClient

    result = run(tmp_path, "run", *BY_PLAN[workers], "tracking=sqlite")
    assert result["state"] == "FINISHED"
    assert result["validation_loss"] < 3.5  # bytes at random: 5.5
    client = MlflowClient(f"sqlite:///{tmp_path}/outputs/mlflow.db")
    for name in LOGGED:
        history = client.get_metric_history(result["mlflow_run_id"], f"experts/{name}")
        assert sorted({point.step for point in history})[-1] == 30
        assert all(point.value > 0 for point in history), name
    skews = client.get_metric_history(result["mlflow_run_id"], "experts/rank_skew")
    assert all(1 <= point.value <= workers for point in skews)


@pytest.fixture(scope="module")
def by_backend(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    place = tmp_path_factory.mktemp("by_backend")
    return place, run(place, "run", "cluster.workers=2")


@pytest.mark.slow
def test_the_plan_changes_no_bit_of_a_run(by_backend: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    _, backend = by_backend
    planned = run(tmp_path, "run", *BY_PLAN[2])
    for key in ("weights_sha256", "train_loss", "validation_loss", "test"):
        assert planned[key] == backend[key], key


@pytest.mark.slow
def test_a_killed_run_ends_with_the_weights_of_an_undisturbed_one(
    by_backend: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    folder, (_, undisturbed) = tmp_path / "run", by_backend
    journal = folder / "journal.jsonl"

    def saved_twice() -> bool:
        return journal.exists() and sum(isinstance(event, SnapshotSaved) for event in read_journal(journal)) >= 2

    killed_when(tmp_path, ["run", *SHORT, "cluster.workers=2", run_folder(tmp_path, "run")], saved_twice)
    ended = orchestrate(tmp_path, "resume", str(folder), timeout=900)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    resumed = json.loads((folder / "result.json").read_text())
    for key in ("weights_sha256", "train_loss", "validation_loss", "test"):
        assert resumed[key] == undisturbed[key], key


@pytest.mark.slow
def test_the_weights_are_scored_by_any_number_of_workers(by_backend: tuple[Path, dict[str, Any]]) -> None:
    place, result = by_backend
    arguments = [f"evaluate={place / 'run'}", "cluster.workers=1", run_folder(place, "evaluation")]
    ended = orchestrate(place, "run", *arguments)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    scores = json.loads((place / "evaluation" / "evaluation.json").read_text())["scores"]
    assert scores["validation"]["loss"] == pytest.approx(result["validation_loss"], rel=1e-5)
    assert scores["test"]["loss"] == pytest.approx(result["test"]["loss"], rel=1e-5)
    assert scores["task"]["perplexity"] > 1


def test_fewer_experts_than_workers_are_refused_in_one_sentence(tmp_path: Path) -> None:
    ended = orchestrate(tmp_path, "run", "task=moe_language_model", "model.experts=1", "model.top_k=1")
    assert ended.returncode == 2, ended.stderr
    assert "model.experts is 1" in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1, ended.stderr
    assert list(tmp_path.rglob("*")) == []
