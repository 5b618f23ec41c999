"""A restored state gives the bits that the kept one would have given: for every kind of task, optimizer, precision."""

import json
import random
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from trainers import Snapshot, Task, Trainer, TrainerOptions
from trainers.errors import DataError
from trainers.models.mlp import Mlp
from trainers.models.transformer import Transformer
from trainers.random_state import random_state, separate_randomness
from trainers.tasks.image_classification import ImageClassification
from trainers.tasks.language_model import LanguageModel
from trainers.tasks.tabular import Tabular

RATES = [1e-2, 5e-3, 2e-2]
OPTIMIZERS = {
    "sgd": partial(torch.optim.SGD, momentum=0.9),
    "adamw": partial(torch.optim.AdamW, weight_decay=0.1),
    "fused adamw": partial(torch.optim.AdamW, fused=True),
}


def small_task(kind: str) -> Task:
    """Dropout, batch norm and attention dropout, one each."""
    if kind == "table":
        return Tabular(partial(Mlp, width=16, dropout=0.3), "wine")
    if kind == "images":
        return ImageClassification()
    return LanguageModel(partial(Transformer, width=16, layers=2, heads=2, key_value_heads=1, dropout=0.2), context=16)


def small_trainer(kind: str = "table", optimizer: str = "sgd", precision: str = "float32", **options) -> Trainer:
    return Trainer(
        small_task(kind), OPTIMIZERS[optimizer], TrainerOptions(4, precision=precision, validation_samples=8, **options)
    )


def go_on(trainer: Trainer) -> tuple:
    """Three steps and everything that can be seen of them."""
    return trainer.train(RATES), trainer.step, trainer.weights_sha256(), trainer.validate()


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("kind", ["table", "images", "text"])
def test_a_step_after_a_restore_equals_the_step_before(kind, optimizer, precision):
    trainer = small_trainer(kind, optimizer, precision, clip=1.0)
    trainer.train(RATES)
    kept = trainer.snapshot()
    expected = go_on(trainer)
    for _ in range(2):
        trainer.restore(kept)
        assert go_on(trainer) == expected


@pytest.mark.parametrize("kind", ["table", "images", "text"])
def test_another_process_takes_a_written_snapshot_up(kind, tmp_path):
    trainer = small_trainer(kind, "adamw", "float16", accumulate=2)
    trainer.train(RATES)
    trainer.snapshot().write(tmp_path / "state")
    expected = go_on(trainer)
    fresh = small_trainer(kind, "adamw", "float16", accumulate=2)
    fresh.restore(Snapshot.read(tmp_path / "state"))
    assert go_on(fresh) == expected


def test_the_state_before_the_first_step_comes_back():
    trainer = small_trainer(optimizer="adamw")
    kept = trainer.snapshot()
    expected = go_on(trainer)
    trainer.restore(kept)
    assert go_on(trainer) == expected


def test_training_on_leaves_a_snapshot_alone():
    trainer = small_trainer(optimizer="adamw")
    trainer.train(RATES)
    kept = trainer.snapshot()
    before = {name: tensor.clone() for name, tensor in kept.tensors.items()}
    trainer.train(RATES)
    for other in (trainer, small_trainer(optimizer="adamw")):
        other.restore(kept)
        other.train(RATES)
    assert all(torch.equal(before[name], tensor) for name, tensor in kept.tensors.items())


def test_a_snapshot_no_longer_needed_gives_its_memory():
    trainer = small_trainer(optimizer="adamw")
    trainer.train(RATES)
    old = trainer.snapshot()
    trainer.train(RATES)
    new = trainer.snapshot(reuse=old)
    assert {tensor.data_ptr() for tensor in new.tensors.values()} == {
        tensor.data_ptr() for tensor in old.tensors.values()
    }
    expected = go_on(trainer)
    trainer.restore(new)
    assert go_on(trainer) == expected


def test_a_snapshot_takes_the_memory_of_one_state():
    trainer = small_trainer("text", "adamw")
    trainer.train(RATES)
    weights = 4 * trainer.parameters_count
    assert 3 * weights <= trainer.snapshot().bytes <= 3 * weights + 20_000  # the generators take ten thousand


def test_a_restore_does_not_bring_an_old_rate_back():
    trainer = small_trainer()
    trainer.train([0.5])
    kept = trainer.snapshot()
    trainer.restore(kept)
    trainer.train([0.25])
    assert trainer.rates() == [0.25]


def test_shared_and_own_part_make_the_whole(tmp_path):
    trainer = small_trainer(optimizer="adamw")
    trainer.train(RATES)
    whole = trainer.snapshot()
    shared, own = whole.shared(), whole.own()
    assert own.bytes < 20_000
    assert not shared.tensors.keys() & own.tensors.keys()
    joined = shared.joined(own)
    assert joined.values == whole.values
    assert joined.tensors.keys() == whole.tensors.keys()


def test_values_are_plain_json():
    values = small_trainer("images", "adamw", "float16").snapshot().values
    assert json.loads(json.dumps(values)) == values


class Steep(Tabular):
    """Gradients too large for float16: the scaler halves its scale at every step."""

    def loss(self, model, batch):
        return 1e6 * super().loss(model, batch)


def test_the_loss_scale_comes_back():
    trainer = Trainer(Steep(), OPTIMIZERS["sgd"], TrainerOptions(4, precision="float16"))
    trainer.train([1e-3] * 2)
    kept = trainer.snapshot()
    trainer.train([1e-3] * 2)
    assert trainer.snapshot().values["scaler"]["scale"] == kept.values["scaler"]["scale"] / 4
    trainer.restore(kept)
    assert trainer.snapshot().values == kept.values


def test_another_models_snapshot_is_refused():
    kept = small_trainer("table").snapshot()
    with pytest.raises(ValueError, match="restore it with the configuration it was taken with"):
        small_trainer("images").restore(kept)


@pytest.mark.parametrize("content", [b"", b"not a snapshot", b"\x80\x04cos\nsystem\n(S'touch evil'\ntR."])
def test_a_file_that_is_no_snapshot_is_named(tmp_path, content):
    path = Path(tmp_path / "state")
    path.write_bytes(content)
    with pytest.raises(DataError, match="state is not a snapshot"):
        Snapshot.read(path)


def test_all_generators_are_kept_apart():
    before = random_state()
    with separate_randomness(3):
        first = torch.rand(2).tolist(), np.random.rand(2).tolist(), random.random(), random.gauss(0, 1)
    after = random_state()
    assert after[1] == before[1]
    assert all(torch.equal(before[0][name], after[0][name]) for name in before[0])
    with separate_randomness(3):
        assert first == (torch.rand(2).tolist(), np.random.rand(2).tolist(), random.random(), random.gauss(0, 1))
