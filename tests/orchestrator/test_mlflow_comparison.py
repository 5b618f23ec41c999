"""What MLflow's comparison page has to show: short parameters, losses against all steps, runs below their launch."""

import json
import platform
import subprocess
from pathlib import Path

import pytest
from mlflow_runs import ENDED, recorded

from orchestrator.events import Event, PlanChosen, RunStarted
from orchestrator.history import history
from orchestrator.journal_file import read_journal
from orchestrator.multirun import conclude
from orchestrator.recorders.mlflow.environment import git_state
from orchestrator.recorders.mlflow.operations import Operations

mlflow = pytest.importorskip("mlflow")

DATA = Path(__file__).parent.parent / "data"
RUN = read_journal(DATA / "journal_autolrs.jsonl")
STARTED = next(event for event in RUN if isinstance(event, RunStarted))


def parameters(*events: Event) -> dict[str, str]:
    operations = Operations()
    sent = [each for event in events for each in operations.of(event) if each["op"] == "params"]
    return {name: value for each in sent for name, value in each["values"].items()}


def test_what_runs_are_compared_by_has_a_short_name() -> None:
    found = parameters(STARTED, PlanChosen("solved", network="two_boxes"))
    expected = {
        "task": "language_model", "lr_policy": "autolrs", "plan": "two_boxes", "seed": "0", "workers": "2",
        "model": "transformer", "optimizer": "AdamW",
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected
    assert parameters(PlanChosen("none"))["plan"] == "none"
    assert found["yaml.lr.probes"] == "6"
    assert max(expected) < "yaml"  # the page draws those that come first


def test_losses_lie_against_all_steps_too_and_the_run_has_its_name(tmp_path: Path, database: str) -> None:
    run_id = recorded(tmp_path / "run", database, *RUN[:-1])
    client = mlflow.MlflowClient(tracking_uri=database)
    assert client.get_run(run_id).info.run_name == STARTED.run_id
    story = history(RUN)
    trained = [part for part in story.segments if part.kind == "train"]
    losses = {at: loss for part in trained for at, loss in enumerate(part.losses, start=part.start + 1)}
    points = client.get_metric_history(run_id, "all_steps/train_loss")
    assert {point.step: point.value for point in points} == losses
    assert max(losses) == story.train_steps + story.probe_steps > len(losses) == story.train_steps
    validated = [each for each in story.validations if each.split == "validation"]
    assert {point.step: point.value for point in client.get_metric_history(run_id, "all_steps/validation_loss")} == {
        story.total_steps(each.step): each.metrics["loss"] for each in validated
    }


def test_environment_and_state_of_the_folder(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    assert "no Git repository with a commit" in str(git_state(tmp_path))
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    assert git_state(tmp_path) == {"commit": commit, "dirty": False}
    (tmp_path / "plan.json").write_text("{}")
    run_id = recorded(tmp_path, database, STARTED)
    client = mlflow.MlflowClient(tracking_uri=database)
    found = json.loads(mlflow.artifacts.load_text(f"{client.get_run(run_id).info.artifact_uri}/environment.json"))
    assert found["git"] == {"commit": commit, "dirty": True}
    assert (found["python"], found["packages"]["mlflow"]) == (platform.python_version(), mlflow.__version__)
    assert found["torch"] == found["packages"]["torch"]
    assert client.get_run(run_id).data.tags["mlflow.source.git.commit"] == commit
    assert "plan.json" in {each.path for each in client.list_artifacts(run_id)}


def test_runs_of_one_launch_lie_below_it_with_their_comparison(tmp_path: Path, database: str) -> None:
    together = tmp_path / "12-00-00-sweep"
    runs = [together / str(number) for number in range(2)]
    children = []
    for folder, name in zip(runs, ("autolrs", "cosine"), strict=True):
        events = read_journal(DATA / f"journal_{name}.jsonl")
        config = {**events[0].config, "tracking": {"uri": database, "experiment": "test"}, "outputs": str(tmp_path)}
        started = RunStarted(events[0].run_id, str(folder), config, events[0].cost, 0.0)
        children.append(recorded(folder, database, started, *events[1:-1], parent=str(together)))
        lines = (DATA / f"journal_{name}.jsonl").read_text().splitlines()
        first = {**json.loads(lines[0]), "config": config}
        (folder / "journal.jsonl").write_text("\n".join([json.dumps(first), *lines[1:]]) + "\n")
    client = mlflow.MlflowClient(tracking_uri=database)
    (parent,) = {client.get_run(child).data.tags["mlflow.parentRunId"] for child in children}
    assert client.get_run(parent).info.status == "RUNNING"
    conclude(together, runs, "FINISHED")
    run = client.get_run(parent)
    assert (run.info.status, run.info.run_name) == ("FINISHED", f"{tmp_path.name}/12-00-00-sweep")
    assert {"compare.png", "compare.txt"} <= {each.path for each in client.list_artifacts(parent)}
    table = mlflow.artifacts.load_text(f"{run.info.artifact_uri}/compare.txt")
    assert "autolrs" in table
    assert "cosine" in table


def test_a_child_that_is_resumed_leaves_its_parent_as_it_was(tmp_path: Path, database: str) -> None:
    child = recorded(tmp_path / "sweep" / "0", database, STARTED, parent=str(tmp_path / "sweep"))
    client = mlflow.MlflowClient(tracking_uri=database)
    parent = client.get_run(child).data.tags["mlflow.parentRunId"]
    client.set_terminated(parent, "FINISHED")
    assert recorded(tmp_path / "sweep" / "0", database, ENDED) == child
    assert client.get_run(parent).info.status == "FINISHED"
