"""A mixture of experts on several ranks trains as one rank with all experts would, however its tokens travel.

The ranks are processes of their own (moe_rank.py); one group of each size does everything, and the tests look at it.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from moe_rank import RATES, SAMPLES_A_STEP, SGD, task
from safetensors.torch import load_file

from trainers import Trainer, TrainerOptions

RANK = Path(__file__).with_name("moe_rank.py")


def run_ranks(ranks: int, folder: Path) -> Path:
    processes = [subprocess.Popen([sys.executable, RANK, str(rank), str(ranks), folder]) for rank in range(ranks)]
    try:
        assert [process.wait(timeout=300) for process in processes] == [0] * ranks
    finally:
        for process in processes:
            process.kill()
    return folder


@pytest.fixture(scope="module", params=[2, *(pytest.param(ranks, marks=pytest.mark.slow) for ranks in (3, 4))])
def folder(request, tmp_path_factory) -> Path:
    return run_ranks(request.param, tmp_path_factory.mktemp("experts"))


@pytest.fixture(scope="module")
def seen(folder) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted(folder.glob("seen-*.json"))]


@pytest.fixture(scope="module")
def alone() -> tuple[Trainer, list[float]]:
    trainer = Trainer(task(), SGD, TrainerOptions(SAMPLES_A_STEP, clip=0.5, validation_samples=5))
    return trainer, trainer.train(RATES)


def test_a_plan_changes_no_bit(seen):
    for rank in seen:
        planned, backend = rank["planned"], rank["backend"]
        for what in ("losses", "sha256", "validation", "evaluation"):
            assert planned[what] == backend[what], what


def test_ranks_with_some_experts_train_as_one_rank_with_all(seen, alone, folder):
    trainer, losses = alone
    means = torch.tensor([rank["planned"]["losses"] for rank in seen]).mean(dim=0)
    assert means.tolist() == pytest.approx(losses, rel=1e-5)
    together = load_file(folder / "weights-planned")
    assert together.keys() == trainer.model.state_dict().keys()
    for name, tensor in trainer.model.state_dict().items():
        torch.testing.assert_close(
            together[name], tensor, atol=2e-6, rtol=1e-4, msg=lambda text, n=name: f"{n}: {text}"
        )


def test_every_rank_tells_of_the_same_whole_model(seen, alone, folder):
    trainer, _ = alone
    assert len({rank["planned"]["sha256"] for rank in seen}) == 1
    assert {rank["planned"]["parameters"] for rank in seen} == {trainer.parameters_count}
    other = Trainer(task(), SGD, TrainerOptions(2, seed=1))
    other.load_weights(folder / "weights-planned")
    assert other.weights_sha256() == seen[0]["planned"]["sha256"]


def test_validation_and_evaluation_equal_those_of_the_whole_model(seen, folder):
    whole = Trainer(task(), SGD, TrainerOptions(SAMPLES_A_STEP // len(seen), validation_samples=5))
    whole.load_weights(folder / "weights-planned")
    for rank in seen:
        assert rank["planned"]["validation"] == pytest.approx(whole.validate(), rel=1e-5)
    (scores, samples), *others = (rank["planned"]["evaluation"] for rank in seen)
    assert scores == pytest.approx(whole.evaluate()[0], rel=1e-5)
    assert len(samples) == 1
    assert others == [[{}, []]] * len(others)


def test_load_and_cost_are_measured(seen, alone):
    planned = seen[0]["planned"]["measured"]
    assert planned == seen[-1]["planned"]["measured"]
    assert planned["experts/plan_seconds"] > seen[0]["backend"]["measured"]["experts/plan_seconds"] > 0
    assert planned["experts/transfer_seconds"] > 0
    assert planned["experts/dispatched_bytes"] > 0
    assert 1 <= planned["experts/rank_skew"] <= len(seen)
    trainer, _ = alone
    for name, value in trainer.measurements().items():
        if name in ("experts/expert_skew", "experts/balance_loss"):
            assert planned[name] == pytest.approx(value, rel=1e-4)


def test_one_expert_may_get_everything(seen):
    for rank in seen:
        backend, planned = rank["lonely"]
        assert backend == planned


def test_low_precision_travels_as_such(seen):
    for rank in seen:
        (bfloat, planned_bfloat, half, planned_half) = rank["halves"]
        assert (bfloat, half) == (planned_bfloat, planned_half)
    full = seen[0]["backend"]["measured"]["experts/dispatched_bytes"] / (SAMPLES_A_STEP // len(seen))
    assert seen[0]["halves"][0][1] == pytest.approx(full * 2 / 2, rel=0.2)  # two samples a rank, half the bytes each


def test_no_rank_steps_where_one_overflows(seen):
    for before, after, scale in (rank["overflow"] for rank in seen):
        assert before == after
        assert scale == 2**15


def test_steps_after_a_restore_equal_the_steps_before(seen):
    for rank in seen:
        first, *others = rank["restored"]
        assert others == [first, first]
    assert len({rank["restored"][0][1] for rank in seen}) == 1
