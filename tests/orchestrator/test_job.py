"""A job on two real workers: equal weights, exact rewinds and resumes, and one error that ends all."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from orchestrator.cluster.connection import Cluster
from orchestrator.cluster.job import Job, JobFailed, JobSpec
from orchestrator.cluster.snapshots import SnapshotStore, verified
from orchestrator.cluster.worker import Worker
from orchestrator.errors import UserError

TASK = '''
"""A person's own task, in a folder that only `search_paths` names; it fails when told to."""

import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import TensorDataset

from trainers import Splits, Task
from trainers.errors import DataError


class Line(Task):
    def __init__(self, order="", missing=False):
        self._order, self._missing = order, missing

    def build_model(self):
        return nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.Dropout(0.1), nn.Linear(16, 1))

    def build_data(self):
        if self._missing:
            raise DataError("task.data=/nowhere does not exist; name a folder.")
        inputs = torch.randn(96, 4, generator=torch.Generator().manual_seed(1))
        parts = zip(inputs.split(32), inputs.sum(1, keepdim=True).split(32))
        return Splits(*(TensorDataset(*part) for part in parts))

    def loss(self, model, batch):
        self._obey()
        inputs, targets = batch
        return nn.functional.mse_loss(model(inputs), targets)

    def evaluate(self, model, step):
        return {"step": float(step)}, ["a sample"]

    def _obey(self):
        order = Path(self._order).read_text() if self._order and Path(self._order).exists() else ""
        if order and dist.get_rank() == 1:
            print("about to obey:", order, file=sys.stderr, flush=True)
            if order == "raise":
                raise ValueError("the batch is cursed")
            os.kill(os.getpid(), signal.SIGKILL)
'''


@pytest.fixture(scope="module")
def spec(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., JobSpec]:
    folder = tmp_path_factory.mktemp("mine")
    (folder / "line_task.py").write_text(TASK)

    def make(world_size: int = 2, share_folder: bool | None = None, **task: Any) -> JobSpec:
        return JobSpec(
            name="line",
            task={"_target_": "line_task.Line", **task},
            optimizer={"_target_": "torch.optim.AdamW", "_partial_": True},
            options={"batch_size": 4},
            world_size=world_size,
            search_paths=[str(folder)],
            share_folder=share_folder,
        )

    return make


@pytest.fixture(scope="module")
def job(spec: Callable[..., JobSpec]) -> Iterator[Job]:
    with Job(spec()) as started:
        info = started.start()
        assert (info.world_size, info.device) == (2, "cpu")
        assert info.parameters == 4 * 16 + 16 + 2 * 16 + 16 + 1
        assert info.seconds > 0
        yield started


def test_the_ranks_stay_equal_while_the_loss_falls(job: Job) -> None:
    job.keep("here")
    losses = job.train([0.01] * 60)
    assert len(losses) == 60
    assert sum(losses[-10:]) < 0.7 * sum(losses[:10])
    assert len(job.weights_sha256()) == 64  # raises where ranks differ
    job.rewind("here")


def test_a_rewind_is_exact_and_brings_no_rate_back(job: Job) -> None:
    job.train([0.1] * 3)
    job.keep("here")
    before = job.weights_sha256()
    after_small = job.train([0.001] * 2), job.weights_sha256(), job.validate()
    job.rewind("here")
    assert job.weights_sha256() == before
    after_large = job.train([0.05] * 2), job.weights_sha256(), job.validate()
    job.rewind("here")
    assert (job.train([0.001] * 2), job.weights_sha256(), job.validate()) == after_small
    assert after_large[1] != after_small[1]


def test_a_hopeless_probe_ends_early_on_all_ranks(job: Job) -> None:
    job.keep("here")
    assert len(job.train([0.01] * 5, stop_above=1e9)) == 5
    assert len(job.train([0.01] * 5, stop_above=0.0)) == 1
    job.rewind("here")


def test_what_was_not_kept_cannot_be_rewound_to(spec: Callable[..., JobSpec]) -> None:
    worker = Worker(spec(world_size=1), rank=0)
    worker.build("", 0)
    worker.keep("here")
    worker.rewind("here")
    worker.forget("here")
    with pytest.raises(RuntimeError, match="'here' is kept"):
        worker.rewind("here")


@pytest.mark.parametrize("share_folder", [None, False], ids=["shared folder", "object store"])
def test_a_saved_state_goes_on_to_the_bit(job: Job, tmp_path: Path, share_folder: bool | None) -> None:
    object.__setattr__(job._spec, "share_folder", share_folder)
    store = SnapshotStore(tmp_path / "snapshots")
    saved = store.save(1, job.save)
    undisturbed = job.train([0.01, 0.02, 0.03]), job.weights_sha256()
    names = sorted(path.name for path in saved.path.iterdir())
    assert names == ["manifest.json", "rank-00000.safetensors", "rank-00001.safetensors", "shared.safetensors"]
    assert job.load(saved.path, verified(saved.path).content) == saved.content["step"]
    assert (job.train([0.01, 0.02, 0.03]), job.weights_sha256()) == undisturbed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["snapshots"]


def test_saving_after_keep_saves_the_present_state(job: Job, tmp_path: Path) -> None:
    job.keep("here")
    job.train([0.5])
    now = job.weights_sha256()
    saved = SnapshotStore(tmp_path).save(1, job.save)
    job.rewind("here")
    assert job.weights_sha256() != now
    job.load(saved.path, saved.content)
    assert job.weights_sha256() == now


def test_another_number_of_workers_is_refused(job: Job, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"saved by 4 workers.*cluster\.workers=4"):
        job.load(tmp_path, {"world_size": 4})


def test_evaluation_and_weights_reach_the_driver(job: Job, tmp_path: Path) -> None:
    metrics, samples = job.evaluate()
    assert metrics["step"] >= 0
    assert samples == ["a sample"]
    job.save_weights(tmp_path / "weights.safetensors")
    weights = load_file(tmp_path / "weights.safetensors")
    assert weights["0.weight"].shape == (16, 4)
    assert all(torch.isfinite(tensor).all() for tensor in weights.values())


@pytest.mark.parametrize(
    ("order", "sentence", "last_words"),
    [
        pytest.param("raise", "ValueError: the batch is cursed", "the batch is cursed", marks=pytest.mark.slow),
        ("die", "its process died", "about to obey: die"),
    ],
)
def test_the_first_failing_rank_is_named_and_ends_the_gang(
    spec: Callable[..., JobSpec], tmp_path: Path, order: str, sentence: str, last_words: str
) -> None:
    with Job(spec(order=str(tmp_path / "order"))) as job:
        job.start()
        job.train([0.01] * 2)
        pids = job.pids
        (tmp_path / "order").write_text(order)
        begin = time.monotonic()
        with pytest.raises(JobFailed, match="rank 1 failed") as failed:
            job.train([0.01] * 1000)
        assert failed.value.rank == 1
        assert failed.value.sentence.startswith(sentence)
        assert any(last_words in line for line in failed.value.log)
        assert time.monotonic() - begin < 10  # gloo alone would wait for minutes
        assert all_gone_within(2.0, pids)


@pytest.mark.slow
def test_wrong_data_is_told_as_the_task_tells_it(spec: Callable[..., JobSpec]) -> None:
    with (
        Job(spec(world_size=1, missing=True)) as job,
        pytest.raises(UserError, match=r"^task\.data=/nowhere does not exist"),
    ):
        job.start()


def test_a_class_that_does_not_exist_is_named(spec: Callable[..., JobSpec]) -> None:
    wrong = JobSpec("wrong", {"_target_": "line_task.Lien"}, {}, {"batch_size": 4}, search_paths=spec().search_paths)
    with pytest.raises(UserError, match=r"line_task\.Lien"):
        Worker(wrong, rank=0).build("", 0)


def test_what_the_cluster_cannot_hold_is_refused_at_once(spec: Callable[..., JobSpec]) -> None:
    begin = time.monotonic()
    with pytest.raises(UserError, match=r"cluster\.workers=99 need 99 × 1 CPU, have \d+"):
        Job(spec(world_size=99)).start()
    assert time.monotonic() - begin < 5


def all_gone_within(seconds: float, pids: list[int]) -> bool:
    until = time.monotonic() + seconds
    while any(is_alive(pid) for pid in pids):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
