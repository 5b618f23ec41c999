"""Gradients along a plan: the same weights as by the backend's own way, and what was moved is told."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from comm_plans import solve
from comm_plans.fabrics import fabric
from orchestrator.cluster.connection import Cluster
from orchestrator.cluster.job import Job, JobSpec
from orchestrator.errors import UserError

RATES = [0.05] * 6


def spec(workers: int) -> JobSpec:
    """A small table task, as the command line would describe it."""
    model = {"_target_": "trainers.models.mlp.Mlp", "_partial_": True, "width": 32, "layers": 2, "dropout": 0.0}
    return JobSpec(
        name="planned",
        task={"_target_": "trainers.tasks.tabular.Tabular", "data": "wine", "model": model},
        optimizer={"_target_": "torch.optim.SGD", "_partial_": True, "momentum": 0.9},
        options={"batch_size": 8},
        world_size=workers,
        cpus=0.5,
    )


def by_plan(workers: int, transport: str) -> JobSpec:
    """The same job, all of whose gradients go by plan."""
    plan = solve(fabric(f"ring:ranks={workers}"), "all_reduce")
    options = {"transport": transport, "threshold_bytes": 0, "strict": True}
    return replace(spec(workers), plans=[plan.to_document()], planned_options=options)


def trained(job_spec: JobSpec, weights: Path) -> tuple[str, object]:
    """Digest of the weights after some steps, and what the group says of its calls."""
    with Job(job_spec) as job:
        job.start()
        job.train(RATES)
        job.save_weights(weights)
        return job.weights_sha256(), job.communication()


@pytest.mark.parametrize("transport", ["streams", pytest.param("p2p", marks=pytest.mark.slow)])
def test_two_workers_end_with_the_same_weights_to_the_bit(cluster: Cluster, tmp_path: Path, transport: str) -> None:
    own_way, nothing = trained(spec(2), tmp_path / "own")
    planned, said = trained(by_plan(2, transport), tmp_path / "planned")
    assert planned == own_way
    assert nothing is None
    assert isinstance(said, dict)
    assert said["rows"]["all_reduce"]["planned_calls"] >= len(RATES)
    json.dumps(said)


@pytest.mark.slow
def test_four_workers_end_with_the_same_weights_but_for_rounding(cluster: Cluster, tmp_path: Path) -> None:
    trained(spec(4), tmp_path / "own")
    trained(by_plan(4, "streams"), tmp_path / "planned")
    own, planned = (load_file(tmp_path / name) for name in ("own", "planned"))
    for name, tensor in own.items():
        torch.testing.assert_close(planned[name], tensor, rtol=0, atol=1e-6)


@pytest.mark.slow
def test_runs_by_plan_repeat_to_the_bit(cluster: Cluster, tmp_path: Path) -> None:
    first, _ = trained(by_plan(3, "streams"), tmp_path / "first")
    second, _ = trained(by_plan(3, "streams"), tmp_path / "second")
    assert first == second


def test_an_interface_that_a_node_lacks_is_a_sentence(cluster: Cluster) -> None:
    words = r"communication\.interface=eth999 is not there on the node of rank [01]; name one of .*lo"
    with Job(replace(spec(2), interface="eth999")) as job, pytest.raises(UserError, match=words):
        job.start()
