"""`communication=planned` from the command line: what is seen and recorded, and what happens where it cannot be."""

import json
import re
from pathlib import Path

import pytest
from commands import SMALL, orchestrate, run_folder

PAIR = "{name: pair, ranks: [a, b], cables: [[a, b, 1]]}"
PLANNED = [*SMALL, "lr=constant", "steps=20", "communication=planned", "communication.threshold_bytes=0"]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("network") / "pair.yaml"
    path.write_text(PAIR)
    return path


@pytest.mark.slow
def test_the_plan_is_shown_and_recorded_and_the_weights_are_those_of_the_backend(pair: Path, tmp_path: Path) -> None:
    from mlflow import MlflowClient

    arguments = [f"topology={pair}", "tracking=sqlite", run_folder(tmp_path, "planned")]
    planned = orchestrate(tmp_path, "run", *PLANNED, *arguments)
    assert planned.returncode == 0, planned.stderr
    assert "all_reduce on pair by plan" in planned.stdout
    assert re.search(r"\n(\d+) of \1 all_reduce by plan at .* \(all_reduce: by plan from 0 bytes", planned.stdout)
    backend = orchestrate(tmp_path, "run", *PLANNED, "communication.method=backend", run_folder(tmp_path, "backend"))
    assert backend.returncode == 0, backend.stderr
    results = [json.loads((tmp_path / name / "result.json").read_text()) for name in ("planned", "backend")]
    assert results[0]["weights_sha256"] == results[1]["weights_sha256"]
    assert (results[0]["plan"]["algbw"], results[0]["plan"]["network"]) == ("1", "pair")
    assert results[0]["plan"]["measured_algbw"] > 0
    assert results[1]["plan"]["source"] == "none"
    report = (tmp_path / "planned" / "report.html").read_text()
    assert "<h2>Communication</h2>" in report
    assert "data:image/svg+xml" in report
    client = MlflowClient(f"sqlite:///{tmp_path}/outputs/mlflow.db")
    run = results[0]["mlflow_run_id"]
    assert {"plan.svg", "communication.txt"} <= {artifact.path for artifact in client.list_artifacts(run)}
    data = client.get_run(run).data
    assert data.tags["orchestrator.plan_network"] == "pair"
    assert data.metrics["communication/all_reduce/planned_calls"] >= 20


@pytest.mark.slow
def test_a_network_that_does_not_fit_is_a_sentence_and_the_backend_goes_on(tmp_path: Path) -> None:
    ended = orchestrate(tmp_path, "run", *PLANNED, "topology=two_boxes.yaml", run_folder(tmp_path, "run"))
    assert ended.returncode == 0, ended.stderr
    assert "has 8 ranks and cluster.workers=2; make them equal; gradients travel by the backend's" in ended.stdout
    assert json.loads((tmp_path / "run" / "result.json").read_text())["plan"]["source"] == "none"


@pytest.mark.slow
def test_strictly_it_ends_the_run(tmp_path: Path) -> None:
    strictly = [*PLANNED, "topology=auto", "communication.strict=true", run_folder(tmp_path, "run")]
    ended = orchestrate(tmp_path, "run", *strictly)
    assert ended.returncode == 2
    assert "all workers on one machine" in ended.stderr + ended.stdout


@pytest.mark.parametrize("network", ["torus:shape=2x2", "'ring:ranks=4'", "C(4,1)"])
def test_a_fabric_or_wiring_is_named_as_it_is(tmp_path: Path, network: str) -> None:
    more = [f"topology={network}", "cluster.workers=4", "dry_run=true", run_folder(tmp_path, "run")]
    ended = orchestrate(tmp_path, "run", *PLANNED, *more)
    assert ended.returncode == 0, ended.stderr
    name = network.strip("'")
    assert f"by a plan for topology={name}, over streams" in " ".join(ended.stdout.split())


@pytest.mark.parametrize(("strict", "code"), [("false", 0), ("true", 2)])
def test_a_dry_run_tells_of_a_network_that_does_not_fit(tmp_path: Path, strict: str, code: int) -> None:
    more = [*PLANNED, "topology=ring:ranks=3", f"communication.strict={strict}", "dry_run=true"]
    ended = orchestrate(tmp_path, "run", *more, run_folder(tmp_path, "run"))
    assert ended.returncode == code
    said = " ".join((ended.stdout + ended.stderr).split())
    assert "topology=ring:ranks=3 has 3 ranks and cluster.workers=2; make them equal" in said
