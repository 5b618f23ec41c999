"""`orchestrate sweep` as a person runs it: finished, killed and resumed, its best launched again, mistakes told."""

import csv
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import killed_when, orchestrate

SMALL = ["task=tabular", "lr=cosine", "tracking=none", "steps=40", "cluster.workers=1", "lr.rate=1e-4..1e-1"]


def place(folder: Path) -> str:
    return f"hydra.sweep.dir={folder / 'sweep'}"


def table(folder: Path) -> list[dict[str, str]]:
    with (folder / "sweep" / "results.csv").open() as file:
        return list(csv.DictReader(file))


def events(folder: Path) -> Iterator[list[dict[str, Any]]]:
    """Of each trial."""
    for path in sorted((folder / "sweep" / "trials").glob("*/journal.jsonl")):
        yield [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.slow
def test_a_sweep_finds_the_best_and_launches_it_again(tmp_path: Path) -> None:
    recorded = [*(word for word in SMALL if word != "tracking=none"), f"outputs={tmp_path / 'outputs'}"]
    words = [*recorded, "optimizer=[adamw,sgd]", "trials=4", "search=random", place(tmp_path)]
    ended = orchestrate(tmp_path, "sweep", *words)
    assert ended.returncode == 0, ended.stderr
    rows = table(tmp_path)
    assert [row["state"] for row in rows] == ["FINISHED"] * 4
    assert sum(line.startswith("trial ") and " of 4 " in line for line in ended.stdout.splitlines()) == 4
    assert (tmp_path / "sweep" / "sweep.png").stat().st_size > 1000
    best = min(rows, key=lambda row: float(row["validation_loss"]))
    again = orchestrate(tmp_path, "run", f"@{tmp_path / 'sweep' / 'best.yaml'}", f"hydra.run.dir={tmp_path / 'again'}")
    assert again.returncode == 0, again.stderr
    made = json.loads((tmp_path / "again" / "result.json").read_text())
    first = json.loads((tmp_path / "sweep" / best["folder"] / "result.json").read_text())
    assert made["weights_sha256"] == first["weights_sha256"]
    in_mlflow(tmp_path / "outputs", float(best["validation_loss"]))
    held = orchestrate(tmp_path, "sweep", *SMALL, place(tmp_path))
    assert (held.returncode, "already holds a sweep" in held.stderr) == (2, True)
    done = orchestrate(tmp_path, "resume", str(tmp_path / "sweep"))
    assert (done.returncode, "holds a finished sweep" in done.stderr) == (2, True)


def in_mlflow(outputs: Path, loss: float) -> None:
    """A parent with its table and its best, and a child a trial; the run of the winner is no child."""
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=f"sqlite:///{outputs / 'mlflow.db'}")
    runs = client.search_runs([each.experiment_id for each in client.search_experiments()])
    parents = {run.data.tags.get("mlflow.parentRunId") for run in runs} - {None}
    assert len(parents) == 1
    parent = client.get_run(parents.pop())
    assert parent.info.status == "FINISHED"
    assert parent.data.metrics["result/validation_loss"] == loss
    assert {"results.csv", "sweep.png", "best.yaml"} <= {
        each.path for each in client.list_artifacts(parent.info.run_id)
    }
    children = [run for run in runs if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
    assert [child.info.status for child in children] == ["FINISHED"] * 4


@pytest.mark.slow
def test_a_killed_sweep_goes_on_and_repeats_nothing(tmp_path: Path) -> None:
    words = ["sweep", *SMALL, "trials=8", "search=bayes", place(tmp_path)]
    trials = tmp_path / "sweep" / "trials.jsonl"

    def ended(number: int) -> bool:
        return trials.is_file() and trials.read_text().count("FINISHED") >= number

    killed_when(tmp_path, words, lambda: ended(2))
    killed_when(tmp_path, ["resume", str(tmp_path / "sweep")], lambda: ended(5))
    before = {row["trial"]: row for row in map(json.loads, trials.read_text().splitlines()) if "state" in row}
    last = orchestrate(tmp_path, "resume", str(tmp_path / "sweep"))
    assert last.returncode == 0, last.stderr
    rows = table(tmp_path)
    assert [row["state"] for row in rows] == ["FINISHED"] * 8
    told = [json.loads(line) for line in trials.read_text().splitlines()]
    assert [line["trial"] for line in told if "values" in line] == list(range(8))
    assert sorted(line["trial"] for line in told if "state" in line) == list(range(8))
    for trial, row in before.items():
        assert float(rows[trial]["validation_loss"]) == row["loss"]
    for story in events(tmp_path):
        assert [each["event"] for each in story].count("RunStarted") == 1
        assert [each["event"] for each in story].count("RunEnded") == 1


@pytest.mark.slow
def test_a_trial_that_fails_ends_alone(tmp_path: Path) -> None:
    """There are not so many samples."""
    ended = orchestrate(tmp_path, "sweep", *SMALL[:-1], "batch_size=[16,100000,8]", "search=grid", place(tmp_path))
    assert ended.returncode == 0, ended.stderr
    assert [row["state"] for row in table(tmp_path)] == ["FINISHED", "FAILED", "FINISHED"]
    assert "failed: " in ended.stdout
    assert "100000" in table(tmp_path)[1]["reason"]
    assert "Traceback" not in ended.stdout + ended.stderr


@pytest.mark.slow
def test_a_sweep_told_to_stop_ends_its_trials_and_goes_on_later(tmp_path: Path) -> None:
    words = ["sweep", *SMALL, "steps=3000", "trials=2", place(tmp_path)]

    def trains() -> bool:
        return any(story[-1]["event"] == "StepsTrained" for story in events(tmp_path) if story)

    assert killed_when(tmp_path, words, trains, signal.SIGINT, whole_group=True) == 128 + signal.SIGINT
    ends = [story[-1] for story in events(tmp_path)]
    assert {(end["event"], end["state"]) for end in ends} == {("RunEnded", "KILLED")}
    last = orchestrate(tmp_path, "resume", str(tmp_path / "sweep"))
    assert last.returncode == 0, last.stderr
    assert [row["state"] for row in table(tmp_path)] == ["FINISHED"] * 2


@pytest.mark.slow
def test_a_population_goes_on_from_its_best_with_other_rates(tmp_path: Path) -> None:
    small = [word for word in SMALL if not word.startswith("lr=")]
    stages = ["lr=constant", "lr.stages=4", "search=pb2", "trials=4"]
    ended = orchestrate(tmp_path, "sweep", *small, *stages, place(tmp_path))
    assert ended.returncode == 0, ended.stderr
    lines = [json.loads(line) for line in (tmp_path / "sweep" / "trials.jsonl").read_text().splitlines()]
    assert len({line["values"]["lr.rate"] for line in lines if "values" in line}) > 4
    assert [row["state"] for row in table(tmp_path)] == ["FINISHED"] * 4
    assert {row["steps"] for row in table(tmp_path)} == {"40"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["lr.rate=0.1..0.01"], "lr.rate=0.1..0.01 is reversed"),
        (["lr.ratee=1e-4..1e-1"], "lr.ratee"),
        (["lr.rate=1e-4..1e-1", "cluster.workers=99"], "cluster.workers=99 need 99"),
    ],
)
def test_wrong_words_start_and_write_nothing(words: list[str], sentence: str, tmp_path: Path) -> None:
    ended = orchestrate(tmp_path, "sweep", "task=tabular", "lr=cosine", *words)
    assert ended.returncode == 2
    assert sentence in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_tells_what_would_be_searched(tmp_path: Path) -> None:
    ended = orchestrate(tmp_path, "sweep", *SMALL, "batch_size=[8,16]", "trials=7", "dry_run=true", place(tmp_path))
    assert ended.returncode == 0, ended.stderr
    assert "7 trials by search=bayes would go into" in ended.stdout
    assert "lr.rate: 0.0001 … 0.1" in ended.stdout
    assert "batch_size: 8, 16" in ended.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_sweep_is_told(tmp_path: Path) -> None:
    (tmp_path / "sweep.json").write_text("{}")
    ended = orchestrate(tmp_path, "resume", str(tmp_path))
    assert (ended.returncode, len(ended.stderr.splitlines())) == (2, 1)
    assert "sweep.json" in ended.stderr
