"""Probes side by side on replicas of a job: the same events, choices and weights as on the job alone, to the bit."""

import os
import signal
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import pytest
import torch

from orchestrator.cluster.connection import Cluster, check_capacity
from orchestrator.cluster.job import Job, JobFailed
from orchestrator.cluster.job_spec import JobSpec
from orchestrator.cluster.parcel import pack, unpack
from orchestrator.cluster.replicas import job_and_replicas, start_together
from orchestrator.errors import UserError
from orchestrator.events import ArmTakenUp, Event, ForecastMade, ProbeRan, RateChosen
from orchestrator.execution import Execution
from orchestrator.learning_rate import make_policy
from orchestrator.learning_rate.policy import Choice
from trainers.snapshot import Snapshot

STEPS = 600
SPEC = JobSpec(
    name="wine",
    task={
        "_target_": "trainers.tasks.tabular.Tabular",
        "data": "wine",
        "model": {
            "_target_": "trainers.models.mlp.Mlp",
            "_partial_": True,
            "width": 16,
            "layers": 1,
            "dropout": 0.2,
        },
    },
    optimizer={
        "_target_": "schedulefree.AdamWScheduleFree",
        "_partial_": True,
        "betas": [0.8, 0.99],
        "weight_decay": 0.01,
    },
    options={"batch_size": 8, "clip": 1.0},
    call_seconds=120.0,
)
Told = tuple[list[Event], str]


def carried_through(job: Job, replicas: Sequence[Job] = (), remembered: Sequence[ProbeRan] = ()) -> Told:
    """What was tried, concluded and taken up from the fresh state, without the seconds it took; and the weights."""
    policy = make_policy({"name": "autolrs"}, STEPS)
    events: list[Event] = []
    execution = Execution(job, events.append, replicas=replicas)
    execution.remember(remembered)
    while (action := policy.ask()) is not None:
        findings = policy.tell(execution.carry_out(action))
        events += [RateChosen(each) if isinstance(each, Choice) else ForecastMade(each) for each in findings]
    kinds = (ProbeRan, ForecastMade, RateChosen, ArmTakenUp)
    return [timeless(event) for event in events if isinstance(event, kinds)], job.weights_sha256()


def timeless(event: Any) -> Any:
    seconds = [field.name for field in fields(event) if field.name.endswith("seconds")]
    return replace(event, **dict.fromkeys(seconds, 0.0))


@pytest.mark.parametrize(
    ("ranks", "count"),
    [
        (1, 1),
        pytest.param(1, 2, marks=pytest.mark.slow),
        pytest.param(1, 3, marks=pytest.mark.slow),
        pytest.param(2, 1, marks=pytest.mark.slow),
    ],
)
def test_replicas_change_nothing_but_the_time(cluster: Cluster, ranks: int, count: int) -> None:
    with job_and_replicas(replace(SPEC, world_size=ranks), count) as (job, replicas):
        assert start_together(job, replicas).world_size == ranks
        job.keep("fresh")
        alone = carried_through(job)
        job.rewind("fresh")
        assert carried_through(job, replicas) == alone
        events, weights = alone
        probes = [event for event in events if isinstance(event, ProbeRan)][:6]
        job.rewind("fresh")
        assert carried_through(job, replicas, probes) == ([each for each in events if each not in probes], weights)


@pytest.mark.slow
def test_a_replica_that_dies_ends_all_in_a_sentence(cluster: Cluster) -> None:
    with job_and_replicas(SPEC, 1) as (job, replicas):
        start_together(job, replicas)
        os.kill(replicas[0].pids[0], signal.SIGKILL)
        with pytest.raises(JobFailed, match="rank 0 failed: its process died"):
            carried_through(job, replicas)


def test_replicas_need_room_as_the_job_does(cluster: Cluster) -> None:
    check_capacity(2, 1, 0, {"CPU": 8.0}, replicas=3)
    with pytest.raises(UserError, match=r"cluster\.workers=2 with cluster\.probe_replicas=4 need 10 × 1 CPU, have 8; "):
        check_capacity(2, 1, 0, {"CPU": 8.0}, replicas=4)


@pytest.mark.slow
def test_a_busy_cluster_has_no_room_for_replicas(cluster: Cluster) -> None:
    crowded = replace(SPEC, world_size=3, place_seconds=1.0)
    with (
        job_and_replicas(crowded, 1) as (job, replicas),
        pytest.raises(UserError, match=r"cluster\.probe_replicas=1: "),
    ):
        start_together(job, replicas)


def test_a_parcel_holds_every_kind_of_tensor_to_the_bit() -> None:
    numbers = torch.linspace(-1, 1, 12).reshape(3, 4)
    tensors = {
        "brain": numbers.bfloat16(),
        "empty": torch.empty(0, 3),
        "flags": numbers > 0,
        "long": torch.tensor(7),
        "turned": numbers.T,
    }
    packed = pack(Snapshot(tensors, {"step": 3, "shards": []}))
    for array in packed.arrays.values():
        array.flags.writeable = False  # as in the object store
    found = unpack(packed)
    assert found.values == {"step": 3, "shards": []}
    for name, tensor in tensors.items():
        assert found.tensors[name].dtype == tensor.dtype
        assert torch.equal(found.tensors[name], tensor)
        found.tensors[name].zero_()  # memory of its own
