"""Low-rank adapters: what they compute, and what is kept of a model that is mostly frozen."""

import hashlib

import pytest
import schedulefree
import torch
from safetensors import safe_open
from torch import nn
from torch.utils.data import TensorDataset

from trainers import Splits, Task, Trainer, TrainerOptions
from trainers.errors import DataError
from trainers.frozen import frozen, frozen_digest
from trainers.models.lora import LoraLinear, add_lora, merged
from trainers.models.lora_options import LoraOptions
from trainers.models.transformer import Transformer
from trainers.snapshot import Snapshot

TOKENS = torch.arange(60).reshape(4, 15) % 50


def base(seed: int = 0) -> Transformer:
    torch.manual_seed(seed)
    return Transformer(50, width=32, layers=2, heads=4, key_value_heads=2)


def adapted(**options) -> Transformer:
    model = base()
    add_lora(model, LoraOptions(**options))
    return model


class Adapting(Task):
    """Predict the next of tokens that count up; the base has the weights of a seed."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def build_model(self) -> nn.Module:
        state = torch.get_rng_state()
        model = base(self._seed)
        torch.set_rng_state(state)
        add_lora(model, LoraOptions(rank=4))
        return model

    def build_data(self) -> Splits:
        return Splits(*(TensorDataset(TOKENS.roll(part)) for part in range(3)))

    def loss(self, model, batch):
        (tokens,) = batch
        return nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


def trainer(optimizer=torch.optim.AdamW, seed: int = 0) -> Trainer:
    return Trainer(Adapting(seed), optimizer, TrainerOptions(batch_size=2))


def test_fresh_adapters_change_nothing():
    torch.testing.assert_close(adapted()(TOKENS), base()(TOKENS), rtol=0, atol=0)


@pytest.mark.parametrize("layers", [("queries", "values"), ("output",), ("gate", "up", "down"), ("keys", "down")])
def test_merged_weights_compute_what_adapters_compute(layers):
    model = adapted(rank=3, alpha=5.0, layers=layers)
    for module in model.modules():
        if isinstance(module, LoraLinear):
            nn.init.normal_(module.up, std=0.1)
    plain = Transformer(50, width=32, layers=2, heads=4, key_value_heads=2)
    plain.load_state_dict(merged(model))
    torch.testing.assert_close(plain(TOKENS), model(TOKENS))
    assert (plain(TOKENS) - base()(TOKENS)).abs().max() > 1e-2


def test_the_change_of_weights_is_the_papers():
    layer = LoraLinear(nn.Linear(6, 5), rank=2, alpha=8.0)
    nn.init.normal_(layer.up)
    inputs = torch.randn(7, 6)
    expected = inputs @ layer.weight.T + layer.bias + 4.0 * inputs @ layer.down.T @ layer.up.T
    torch.testing.assert_close(layer(inputs), expected)


def test_only_the_adapters_named_are_trained():
    model = adapted(rank=4, layers=["keys"])
    names = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    assert names == {f"blocks.{layer}.attention.keys.{part}" for layer in range(2) for part in ("down", "up")}
    assert frozen(model).keys() == {name for name, _ in base().named_parameters()}
    assert model.get_parameter("blocks.1.attention.keys.down").shape == (4, 32)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rank": 0}, "task.lora.rank is 0; it must be at least 1"),
        ({"alpha": 0.0}, "task.lora.alpha is 0.0"),
        ({"layers": []}, "name some of queries"),
        ({"layers": ["queries", "embedding"]}, "task.lora.layers is .*embedding"),
    ],
)
def test_options_that_cannot_work_are_refused(options, sentence):
    with pytest.raises(DataError, match=sentence):
        LoraOptions(**options)


def test_training_moves_the_adapters_alone():
    run, untouched = trainer(), base().state_dict()
    losses = run.train([0.01] * 40)
    assert losses[-1] < losses[0]
    for name, parameter in frozen(run.model).items():
        assert torch.equal(parameter, untouched[name])


@pytest.mark.parametrize("optimizer", [torch.optim.AdamW, schedulefree.AdamWScheduleFree])
def test_a_snapshot_holds_no_frozen_weights_and_resumes_to_the_bit(optimizer, tmp_path):
    run = trainer(optimizer)
    run.train([0.01] * 5)
    kept = run.snapshot()
    assert not any("embedding" in name or "norm" in name for name in kept.tensors)
    assert kept.values["frozen"] == frozen_digest(run.model)
    kept.write(tmp_path / "snapshot.safetensors")
    expected = run.train([0.01] * 5)
    other = trainer(optimizer)
    other.restore(Snapshot.read(tmp_path / "snapshot.safetensors"))
    assert other.train([0.01] * 5) == expected
    assert other.weights_sha256() == run.weights_sha256()
    assert other.validate() == run.validate()


def test_a_snapshot_over_another_base_is_refused():
    run = trainer()
    with pytest.raises(DataError, match="build the model from the same file"):
        trainer(seed=1).restore(run.snapshot())


def test_the_hash_covers_frozen_weights_too():
    assert trainer().weights_sha256() != trainer(seed=1).weights_sha256()


@pytest.mark.parametrize("optimizer", [torch.optim.AdamW, schedulefree.AdamWScheduleFree])
def test_saved_weights_are_the_adapters_with_the_digest_of_their_base(optimizer, tmp_path):
    run = trainer(optimizer)
    run.train([0.01] * 5)
    run.save_weights(tmp_path / "weights.safetensors")
    with safe_open(tmp_path / "weights.safetensors", framework="pt") as file:
        assert all(name.endswith((".down", ".up")) for name in file.keys())  # noqa: SIM118
        assert file.metadata() == {"frozen": frozen_digest(run.model)}
    scored = trainer(optimizer)
    scored.load_weights(tmp_path / "weights.safetensors")
    assert scored.validate() == run.validate()
    with pytest.raises(DataError, match="build the model from the same file"):
        trainer(seed=1).load_weights(tmp_path / "weights.safetensors")


def test_the_digest_is_over_names_and_bytes():
    model = adapted()
    lines = []
    for name, parameter in sorted(base().named_parameters()):
        lines.append(f"{name} {hashlib.sha256(parameter.detach().numpy().tobytes()).hexdigest()}\n")
    assert frozen_digest(model) == hashlib.sha256("".join(lines).encode()).hexdigest()
    assert frozen_digest(base()) is None
