"""Steps, rates, validation and weights of one rank."""

import hashlib
import math
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from torch.utils.data import TensorDataset

from trainers import Splits, Task, Trainer, TrainerOptions
from trainers.errors import DataError


class Noisy(Task):
    """A line through noise, with everything that could leak out of a validation: batch norm, dropout, random loss."""

    def build_model(self) -> nn.Module:
        return nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))

    def build_data(self) -> Splits:
        features = torch.randn(70, 3, generator=torch.Generator().manual_seed(0))
        targets = features.sum(1, keepdim=True)
        return Splits(*(TensorDataset(features[a:b], targets[a:b]) for a, b in ((0, 40), (40, 57), (57, 70))))

    def loss(self, model: nn.Module, batch: tuple[torch.Tensor, ...]) -> torch.Tensor:
        features, targets = batch
        return (model(features) - targets).square().mean() + 0.01 * torch.rand(())


class Plain(Noisy):
    """The same without randomness."""

    def build_model(self) -> nn.Module:
        return nn.Linear(3, 1)

    def loss(self, model: nn.Module, batch: tuple[torch.Tensor, ...]) -> torch.Tensor:
        features, targets = batch
        return (model(features) - targets).square().mean()

    def metrics(self, model: nn.Module, batch: tuple[torch.Tensor, ...]) -> dict[str, torch.Tensor]:
        return {"error": (model(batch[0]) - batch[1]).abs().mean()}


def sgd(parameters) -> torch.optim.SGD:
    return torch.optim.SGD(parameters, lr=123.0)


def test_a_step_is_the_step_of_the_textbook():
    trainer = Trainer(Plain(), sgd, TrainerOptions(batch_size=40))
    weight, bias = (parameter.detach().clone() for parameter in trainer.model.parameters())
    features, targets = Plain().build_data().train.tensors
    error = features @ weight.T + bias - targets
    losses = trainer.train([0.1])
    assert losses == pytest.approx([error.square().mean().item()])
    torch.testing.assert_close(trainer.model.weight, weight - 0.1 * (2 * error * features).mean(0, keepdim=True))
    torch.testing.assert_close(trainer.model.bias, bias - 0.1 * (2 * error).mean(0))
    assert trainer.rates() == [0.1]
    assert trainer.step == 1


def test_one_call_or_many_make_no_difference():
    together, apart = (Trainer(Noisy(), sgd, TrainerOptions(4)) for _ in range(2))
    rates = [0.1 / (step + 1) for step in range(25)]  # across two epochs' ends
    torch.manual_seed(5)
    expected = together.train(rates)
    torch.manual_seed(5)
    assert [loss for rate in rates for loss in apart.train([rate])] == expected
    assert apart.weights_sha256() == together.weights_sha256()


def test_accumulated_batches_equal_one_large_batch():
    large = Trainer(Plain(), sgd, TrainerOptions(batch_size=12))
    small = Trainer(Plain(), sgd, TrainerOptions(batch_size=3, accumulate=4))
    assert small.train([0.1] * 5) == pytest.approx(large.train([0.1] * 5), rel=1e-5)
    torch.testing.assert_close(small.model.weight, large.model.weight)


def test_clipping_bounds_the_step():
    trainer = Trainer(Plain(), sgd, TrainerOptions(batch_size=8, clip=1e-3))
    before = nn.utils.parameters_to_vector(trainer.model.parameters()).detach()
    trainer.train([1.0])
    change = nn.utils.parameters_to_vector(trainer.model.parameters()).detach() - before
    assert change.norm().item() == pytest.approx(1e-3, rel=1e-3)


def test_validation_leaves_no_trace():
    quiet, watched = (Trainer(Noisy(), sgd, TrainerOptions(4)) for _ in range(2))
    torch.manual_seed(5)
    expected = quiet.train([0.1] * 3) + quiet.train([0.1] * 3)
    torch.manual_seed(5)
    losses = watched.train([0.1] * 3)
    assert watched.validate() == watched.validate()
    watched.evaluate()
    assert losses + watched.train([0.1] * 3) == expected
    assert watched.weights_sha256() == quiet.weights_sha256()


def test_validation_keeps_a_frozen_part_in_evaluation_mode():
    trainer = Trainer(Noisy(), sgd, TrainerOptions(4))
    trainer.model.train()
    trainer.model[1].eval()
    trainer.validate()
    assert [module.training for module in trainer.model] == [True, False, True, True]


def test_validation_is_the_mean_over_the_whole_split():
    trainer = Trainer(Plain(), sgd, TrainerOptions(batch_size=4))  # 17 samples: the last batch has one
    features, targets = Plain().build_data().validation.tensors
    errors = trainer.model(features) - targets
    metrics = trainer.validate()
    assert metrics["loss"] == pytest.approx(errors.square().mean().item())
    assert metrics["error"] == pytest.approx(errors.abs().mean().item())


def test_validation_can_be_limited_to_some_samples_but_the_test_is_whole():
    few = Trainer(Plain(), sgd, TrainerOptions(batch_size=4, validation_samples=5))
    whole = Trainer(Plain(), sgd, TrainerOptions(batch_size=4))
    features, targets = (tensor[[0, 3, 6, 10, 13]] for tensor in Plain().build_data().validation.tensors)
    assert few.validate()["loss"] == pytest.approx((few.model(features) - targets).square().mean().item())
    assert few.validate("test") == whole.validate("test")


def test_training_stops_where_it_was_asked_to():
    trainer = Trainer(Plain(), sgd, TrainerOptions(batch_size=8))
    losses = trainer.train([1e3] * 100, stop_above=1e6)
    assert len(losses) == trainer.step < 10
    assert losses[-1] > 1e6 >= max(losses[:-1])
    losses = trainer.train([1e3] * 100, stop_above=math.inf)
    assert not math.isfinite(losses[-1])
    assert len(trainer.train([1e3] * 7)) == 7  # unasked, it goes on


def test_seeds_give_other_weights_and_equal_seeds_equal_ones():
    hashes = [Trainer(Noisy(), sgd, TrainerOptions(4, seed=seed)).weights_sha256() for seed in (0, 0, 1)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_deterministic_refuses_what_has_no_deterministic_kernel():
    try:
        Trainer(Plain(), sgd, TrainerOptions(4, deterministic=True)).train([0.1])
        assert torch.are_deterministic_algorithms_enabled()
    finally:
        torch.use_deterministic_algorithms(False)


def test_the_hash_covers_parameters_and_buffers_in_name_order():
    trainer = Trainer(Plain(), sgd, TrainerOptions(4))
    digest = hashlib.sha256()
    for name, shape in (("bias", (1,)), ("weight", (1, 3))):
        digest.update(f"parameters.{name} torch.float32 {shape}\n".encode())
        digest.update(getattr(trainer.model, name).detach().numpy().tobytes())
    assert trainer.weights_sha256() == digest.hexdigest()
    noisy = Trainer(Noisy(), sgd, TrainerOptions(4))
    before = noisy.weights_sha256()
    noisy.model[1].running_mean += 1
    assert noisy.weights_sha256() != before


def test_weights_are_saved_for_any_reader_of_safetensors(tmp_path):
    trainer = Trainer(Noisy(), sgd, TrainerOptions(4))
    trainer.save_weights(tmp_path / "weights.safetensors")
    state = load_file(tmp_path / "weights.safetensors")
    assert state.keys() == trainer.model.state_dict().keys()
    assert all(torch.equal(state[name], tensor) for name, tensor in trainer.model.state_dict().items())
    other = Trainer(Noisy(), sgd, TrainerOptions(4, seed=1))
    other.load_weights(tmp_path / "weights.safetensors")
    assert other.weights_sha256() == trainer.weights_sha256()
    with pytest.raises(RuntimeError, match="Missing key"):
        Trainer(Plain(), sgd, TrainerOptions(4)).load_weights(tmp_path / "weights.safetensors")


def test_too_little_data_for_a_step_is_said():
    with pytest.raises(DataError, match="holds 40 samples, fewer than one step's 44"):
        Trainer(Plain(), sgd, TrainerOptions(batch_size=22, accumulate=2))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"batch_size": 0}, "batch_size is 0"),
        ({"batch_size": 1, "accumulate": -1}, "accumulate is -1"),
        ({"batch_size": 1, "validation_samples": 0}, "validation_samples is 0"),
        ({"batch_size": 1, "clip": 0.0}, "clip is 0.0"),
        ({"batch_size": 1, "precision": "int8"}, "choose float32, bfloat16 or float16"),
        ({"batch_size": 1, "device": "abacus"}, "choose cpu or cuda"),
        ({"batch_size": 1, "seed": -1}, "seed is -1"),
    ],
)
def test_options_that_cannot_work_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        TrainerOptions(**options)


def test_the_package_and_the_data_checks_load_no_torch():
    code = "import sys, trainers, trainers.options, trainers.data.check; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
