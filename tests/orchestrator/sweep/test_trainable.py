"""Our trainings under a person's own Ray Tune: the same to the bit as alone, ended alone, taken up where they stood."""

import json
from pathlib import Path
from typing import Any

import pytest
from ray import tune
from ray.tune.schedulers import ASHAScheduler, FIFOScheduler, TrialScheduler

from orchestrator.cluster.connection import Cluster
from orchestrator.composing import configured
from orchestrator.errors import UserError
from orchestrator.launch import launch
from orchestrator.sweep.trainable import as_trainable

SMALL = ["task=tabular", "lr=constant", "tracking=none", "steps=24", "lr.validate_every=6", "cluster.workers=2"]


def tuned(folder: Path, rates: list[float], at_once: int, scheduler: TrialScheduler | None = None) -> Any:
    """A trial a rate, in a run folder called by it."""
    return tune.Tuner(
        as_trainable(SMALL, folder),
        param_space={
            "lr.rate": tune.grid_search(rates),
            "hydra.run.dir": tune.sample_from(lambda spec: str(folder / f"{spec.config['lr.rate']}")),
        },
        tune_config=tune.TuneConfig(
            metric="validation_loss",
            mode="min",
            max_concurrent_trials=at_once,
            scheduler=scheduler or FIFOScheduler(),
            reuse_actors=True,
        ),
        run_config=tune.RunConfig(storage_path=str(folder / "tune"), verbose=0),
    ).fit()


def result_of(folder: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return result


@pytest.mark.slow
def test_trials_are_what_they_are_alone_and_fail_alone(cluster: Cluster, tmp_path: Path) -> None:
    """The second one has the workers of the first, and the third a rate that is none."""
    results = tuned(tmp_path, [0.01, 0.02, -1.0, 0.03], at_once=1)
    assert [str(error).count("lr.rate is -1") > 0 for error in results.errors] == [True]
    for rate in (0.01, 0.02, 0.03):
        alone = tmp_path / "alone" / str(rate)
        assert launch(configured([*SMALL, f"lr.rate={rate}"]), alone) == 0
        assert result_of(tmp_path / str(rate))["weights_sha256"] == result_of(alone)["weights_sha256"]
    best = results.get_best_result()
    assert best.metrics["validation_loss"] == result_of(tmp_path / str(best.config["lr.rate"]))["validation_loss"]
    assert best.metrics["step"] == 24


@pytest.mark.slow
def test_a_trial_that_a_scheduler_stops_is_killed(cluster: Cluster, tmp_path: Path) -> None:
    rungs = ASHAScheduler("step", max_t=24, grace_period=6, reduction_factor=2)
    tuned(tmp_path, [0.01, 1e-7], at_once=1, scheduler=rungs)
    good, bad = result_of(tmp_path / "0.01"), result_of(tmp_path / "1e-07")
    assert (good["state"], bad["state"]) == ("FINISHED", "KILLED")
    assert "search" in bad["reason"]


@pytest.mark.slow
def test_a_trial_goes_on_from_its_run_folder(cluster: Cluster, tmp_path: Path) -> None:
    tuned(tmp_path, [0.01], at_once=1)
    folder = tmp_path / "0.01"
    expected = result_of(folder)
    lines = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    saved = next(number for number, line in enumerate(lines) if b"SnapshotSaved" in line)
    (folder / "journal.jsonl").write_bytes(b"".join(lines[: saved + 1]))
    (folder / "result.json").unlink()
    tuned(tmp_path, [0.01], at_once=1)
    assert result_of(folder)["weights_sha256"] == expected["weights_sha256"]
    assert b"RunResumed" in (folder / "journal.jsonl").read_bytes()


def test_a_wrong_configuration_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="stepz"):
        as_trainable(["stepz=3"], tmp_path)
