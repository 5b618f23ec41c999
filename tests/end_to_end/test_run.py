"""A whole run, and what can be done with its folder afterwards."""

import json
import math
from pathlib import Path

import pytest
from commands import SMALL, orchestrate, run_folder

FIXED_KEYS = {
    "state", "task", "seed", "lr_policy", "train_steps", "probe_steps", "wall_seconds", "worker_seconds", "train_loss",
    "validation_loss", "lr_by_step", "plan", "mlflow_run_id", "weights_sha256",
}  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("finished")
    ended = orchestrate(place, "run", *SMALL, "tracking=sqlite", run_folder(place, "run"))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return place / "run"


def test_the_result_says_what_happened(finished: Path) -> None:
    result = json.loads((finished / "result.json").read_text())
    assert set(result) >= FIXED_KEYS
    assert result["state"] == "FINISHED"
    assert (result["task"], result["lr_policy"], result["train_steps"]) == ("tabular", "autolrs", 600)
    assert 0 < result["probe_steps"] <= 120
    assert [step for step, _ in result["lr_by_step"]][:9] == [*range(8), 61]  # a warm-up, one rate, then it eases off
    assert math.isfinite(result["test"]["loss"])
    assert len(result["weights_sha256"]) == 64


def test_everything_is_recorded_in_mlflow(finished: Path) -> None:
    from mlflow import MlflowClient

    result = json.loads((finished / "result.json").read_text())
    client = MlflowClient(f"sqlite:///{finished.parent}/outputs/mlflow.db")
    run = client.get_run(result["mlflow_run_id"])
    assert run.info.status == "FINISHED"
    assert [point.step for point in client.get_metric_history(run.info.run_id, "train/loss")][-1] == 599
    assert "lr" in run.data.metrics
    assert (run.data.params["lr_policy"], run.data.params["yaml.task.data"]) == ("autolrs", "breast_cancer")
    assert "lr" not in run.data.params
    artifacts = {artifact.path for artifact in client.list_artifacts(run.info.run_id)}
    assert {"report.html", "result.json"} <= artifacts


def test_the_report_is_made_again(finished: Path) -> None:
    (finished / "report.html").unlink()
    ended = orchestrate(finished.parent, "report", str(finished))
    assert ended.returncode == 0, ended.stderr
    assert "<html" in (finished / "report.html").read_text()


def test_a_second_run_does_not_write_over_the_first(finished: Path) -> None:
    before = (finished / "result.json").read_bytes()
    ended = orchestrate(finished.parent, "run", *SMALL, run_folder(finished.parent, "run"))
    assert ended.returncode == 2
    assert "already holds a run" in ended.stderr
    assert (finished / "result.json").read_bytes() == before


def test_a_dry_run_knows_the_speed_of_runs_before(finished: Path) -> None:
    ended = orchestrate(finished.parent, "run", *SMALL, "dry_run=true", f"outputs={finished.parent}")
    assert ended.returncode == 0, ended.stderr
    assert "by the speed of" in ended.stdout


def test_a_finished_run_is_not_resumed(finished: Path) -> None:
    ended = orchestrate(finished.parent, "resume", str(finished))
    assert ended.returncode == 2
    assert "finished" in ended.stderr


@pytest.mark.slow
def test_a_finished_run_is_scored_again_with_the_same_numbers(finished: Path) -> None:
    ended = orchestrate(finished.parent, "run", f"evaluate={finished}", run_folder(finished.parent, "evaluation"))
    assert ended.returncode == 0, ended.stderr
    scores = json.loads((finished.parent / "evaluation" / "evaluation.json").read_text())["scores"]
    result = json.loads((finished / "result.json").read_text())
    assert scores["test"] == result["test"]
    assert scores["validation"] == result["validation"]


@pytest.mark.slow
def test_several_runs_one_of_which_fails(tmp_path: Path) -> None:
    sweep = [f"hydra.sweep.dir={tmp_path / 'sweep'}", "task=tabular", "tracking=none", "steps=20", "lr=constant"]
    ended = orchestrate(tmp_path, "run", "-m", *sweep, "lr.rate=0.01,-1,0.001")
    assert ended.returncode == 2
    assert "lr.rate is -1" in ended.stderr
    assert {path.parent.name for path in (tmp_path / "sweep").rglob("result.json")} == {"0", "2"}
    lines = ended.stdout.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["FINISHED", "FINISHED", "run"]  # a line each, then the table
    assert (tmp_path / "sweep" / "compare.png").is_file()
