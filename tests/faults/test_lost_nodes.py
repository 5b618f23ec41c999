"""A node is lost for good: the job shrinks and goes on, or waits for it and ends in a sentence."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import CONSTANT, Run, happened, trained

from orchestrator.events import JobReady, Recovered, SnapshotSaved, Warned

TWO_STAGES = [*CONSTANT, "lr.stages=2", "snapshot_every_steps=40", "cluster.workers=3"]


@pytest.fixture
def nodes() -> Iterator[Any]:
    """A Ray cluster of three nodes with a CPU each, which this process is not connected to."""
    from ray.cluster_utils import Cluster

    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    for _ in range(2):
        nodes.add_node(num_cpus=1)
    yield nodes
    nodes.shutdown()


def started(place: Path, nodes: Any, *overrides: str) -> Run:
    return Run(place, f"cluster.address={nodes.address}", *TWO_STAGES, *overrides, ray=os.getpid()).start()


@pytest.mark.slow
def test_an_elastic_job_goes_on_with_the_workers_that_there_is_room_for(tmp_path: Path, nodes: Any) -> None:
    run = started(tmp_path, nodes, "cluster.elastic=true")
    try:
        run.wait_for(happened(SnapshotSaved))
        nodes.remove_node(next(iter(nodes.worker_nodes)), allow_graceful=False)
        assert run.ended() == 0, run.output()
    finally:
        run.close()
    assert [each.world_size for each in run.told(JobReady)] == [3, 2]
    (recovered,) = run.told(Recovered)
    assert recovered.snapshot is not None
    assert any("the cluster holds 2 of 3 workers" in each.message for each in run.told(Warned))
    assert run.result()["train_steps"] == 240


@pytest.mark.slow
def test_a_job_that_is_not_elastic_waits_for_a_node_and_takes_it(tmp_path: Path, nodes: Any) -> None:
    run = started(tmp_path, nodes)
    try:
        run.wait_for(trained(20))
        nodes.remove_node(next(iter(nodes.worker_nodes)), allow_graceful=False)
        time.sleep(5)
        nodes.add_node(num_cpus=1)
        assert run.ended() == 0, run.output()
    finally:
        run.close()
    assert [each.world_size for each in run.told(JobReady)] == [3, 3]


@pytest.mark.slow
def test_a_job_that_waits_in_vain_says_what_it_needs(tmp_path: Path, nodes: Any) -> None:
    run = started(tmp_path, nodes, "cluster.node_seconds=10")
    try:
        run.wait_for(trained(20))
        nodes.remove_node(next(iter(nodes.worker_nodes)), allow_graceful=False)
        assert run.ended() == 2
    finally:
        run.close()
    result = run.result()
    assert result["state"] == "FAILED"
    assert "cluster.workers=3" in result["reason"]
