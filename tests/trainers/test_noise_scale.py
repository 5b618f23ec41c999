"""The gradient noise scale is that of data whose noise is known, and what is tried between steps leaves no trace."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import Parameter

from comm_plans import solve
from comm_plans.fabrics import fabric
from trainers import Trainer, TrainerOptions
from trainers.models.transformer import Transformer
from trainers.noise_scale import noise_scale, squared_norms
from trainers.tasks.language_model import LanguageModel

RANK = Path(__file__).with_name("trial_rank.py")


@given(
    gradient=st.floats(0.1, 10),
    variance=st.floats(0, 10),
    small=st.integers(1, 64),
    factor=st.integers(2, 64),
)
def test_expected_norms_give_the_noise_scale_exactly(gradient: float, variance: float, small: int, factor: int) -> None:
    """E|G_B|² = |G|² + S / B: equation A.1 of the paper."""
    big = small * factor
    few, many = (gradient + variance / size for size in (small, big))
    assert noise_scale(few, many, small, big) == pytest.approx(min(variance / gradient, big), rel=1e-6, abs=1e-6)


def test_what_drowns_in_noise_is_as_much_as_was_looked_at() -> None:
    assert noise_scale(few=1.0, many=0.05, small=2, big=32) == 32
    assert noise_scale(few=1.0, many=1.0, small=2, big=32) == 0


def test_samples_around_a_mean_have_their_spread_over_their_distance() -> None:
    """The gradient of |w − x|² / 2 is w − x: its noise is that of x."""
    torch.manual_seed(0)
    parameter = Parameter(torch.full((50,), 0.5))
    data = 2 * torch.randn(20_000, 50)

    def backward(number: int) -> None:
        parameter.grad = (parameter - data[5 * number : 5 * number + 5]).mean(dim=0).detach()

    few, many = squared_norms([parameter], backward, 4000)
    gradients = (parameter - data).detach().view(4000, 5, 50).mean(dim=1)
    assert few == pytest.approx(float(gradients.square().sum(dim=1).mean()), rel=1e-5)
    assert many == pytest.approx(float(gradients.mean(dim=0).square().sum()), rel=1e-4)
    assert noise_scale(few, many, 5, 20_000) == pytest.approx(50 * 4 / (50 * 0.25), rel=0.05)


def alone(batch_size: int, **options: object) -> Trainer:
    model = partial(Transformer, width=16, layers=1, heads=2, key_value_heads=1)
    task = LanguageModel(model, data=str(RANK.with_name("rank.py")), context=16)
    return Trainer(task, partial(torch.optim.AdamW, fused=True), TrainerOptions(batch_size, clip=1.0, **options))


def test_trials_leave_no_trace_and_another_batch_is_as_if_made_with_it() -> None:
    usual, tried = alone(6), alone(3)
    tried.trials.noise_scale(3)
    assert all(seconds > 0 for seconds in tried.trials.seconds(2, together=True))
    tried.use_batch(6)
    assert tried.train([0.01] * 4) == usual.train([0.01] * 4)
    assert tried.weights_sha256() == usual.weights_sha256()


def test_the_noise_scale_is_that_of_gradients_taken_one_by_one() -> None:
    trainer = alone(3)
    found = trainer.trials.noise_scale(6)
    gradients = []
    for step in range(6):
        stepper = alone(3)._stepper
        stepper.step = step
        stepper.backward()
        gradients.append(torch.cat([flat(each.grad) for each in stepper.model.parameters()]))
    few = sum(float(each.double().square().sum()) for each in gradients) / 6
    many = float(torch.stack(gradients).mean(dim=0).double().square().sum())
    assert found == pytest.approx(noise_scale(few, many, 3, 18), rel=1e-4)


def test_accumulated_batches_count_as_one() -> None:
    assert alone(3, accumulate=2).trials.noise_scale(3) == pytest.approx(alone(6).trials.noise_scale(3), rel=1e-4)


def flat(tensor: Tensor | None) -> Tensor:
    assert tensor is not None
    return tensor.flatten()


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    folder = tmp_path_factory.mktemp("ranks")
    plan = solve(fabric("ring:ranks=2"), "all_reduce")
    (folder / "plan.json").write_text(json.dumps(plan.to_document()))
    processes = [subprocess.Popen([sys.executable, RANK, str(rank), "2", folder]) for rank in range(2)]
    try:
        assert [process.wait(timeout=300) for process in processes] == [0, 0]
    finally:
        for process in processes:
            process.kill()
    return [json.loads((folder / f"seen-{rank}.json").read_text()) for rank in range(2)]


def test_two_ranks_see_the_noise_that_one_sees_in_twice_the_batches(seen: list[dict]) -> None:
    assert seen[0]["noise"] == seen[1]["noise"] == pytest.approx(alone(3).trials.noise_scale(8), rel=1e-4)


def test_two_ranks_train_on_as_if_nothing_had_been_tried(seen: list[dict]) -> None:
    for rank in seen:
        plain, after = rank["losses"]
        assert plain == after
        assert rank["weights"] == [seen[0]["weights"][0]] * 2


def test_sums_are_timed_both_ways_and_the_group_does_what_it_is_told(seen: list[dict]) -> None:
    for rank in seen:
        assert {way: [len(rounds) for rounds in sizes] for way, sizes in rank["sums"].items()} == {
            "planned": [2, 2],
            "backend": [2, 2],
        }
        assert rank["planned_calls"] >= 4  # of the steps since: trials are not counted
        assert rank["rule"].splitlines()[-1] == "as told: by plan from 4 KiB"


def test_what_training_takes_is_told(seen: list[dict]) -> None:
    for rank in seen:
        assert rank["gradient_bytes"][0] == rank["gradient_bytes"][1]
        assert rank["memory"][0] >= 0
        assert rank["memory"][1] > 0
        assert all(seconds > 0 for way in rank["seconds"] for seconds in way)
