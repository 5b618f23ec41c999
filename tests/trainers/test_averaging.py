"""An optimizer that averages its iterates: the average is scored, hashed and saved, and training never notices."""

from functools import partial

import pytest
import torch
from averaging_rank import Line
from safetensors.torch import load_file
from schedulefree import AdamWScheduleFree
from torch import nn

from trainers import Snapshot, Task, Trainer, TrainerOptions
from trainers.averaging import BATCHES
from trainers.data.order import DataOrder

RATES = [0.02] * 12


SCHEDULE_FREE = partial(AdamWScheduleFree, betas=(0.8, 0.99), weight_decay=0.01)


def trainer(task: Task | None = None) -> Trainer:
    return Trainer(task or Line(norm=True), SCHEDULE_FREE, TrainerOptions(4, clip=1.0))


def test_steps_and_average_are_the_librarys():
    """The same batches in a loop of torch's own, with the mode switched by hand."""
    ours = trainer(Line(norm=False))
    losses = ours.train(RATES)
    torch.manual_seed(0)
    model = trainer(Line(norm=False)).model
    optimizer = SCHEDULE_FREE(model.parameters(), lr=RATES[0])
    optimizer.train()
    order = DataOrder(48, 4, 1, 0)
    for step in range(len(RATES)):
        batch = Line(norm=False).build_data().train[torch.from_numpy(order.indices(step, 0))]
        loss = Line(norm=False).loss(model, batch)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        assert losses[step] == pytest.approx(loss.item(), abs=1e-6)
    optimizer.eval()
    held_out = Line(norm=False).build_data().validation.tensors
    assert ours.validate()["loss"] == pytest.approx(Line(norm=False).loss(model, held_out).item(), abs=1e-6)


def test_looking_leaves_no_trace(tmp_path):
    quiet = trainer()
    expected = quiet.train(RATES) + quiet.train(RATES)
    watched = trainer()  # seeds the process's generators again
    losses = watched.train(RATES)
    assert watched.validate() == watched.validate()
    watched.evaluate()
    watched.save_weights(tmp_path / "weights.safetensors")
    assert watched.weights_sha256() == watched.weights_sha256()
    assert losses + watched.train(RATES) == expected
    assert watched.weights_sha256() == quiet.weights_sha256()


def test_the_average_is_saved_with_statistics_of_its_own(tmp_path):
    """Means of fixed training batches under the averaged weights; whoever loads them scores the same."""
    trained = trainer()
    trained.train(RATES)
    trained.save_weights(tmp_path / "weights.safetensors")
    state = load_file(tmp_path / "weights.safetensors")
    assert not torch.equal(state["0.weight"], trained.model[0].weight)
    order = DataOrder(48, 4, 1, 0)
    features = Line(norm=True).build_data().train.tensors[0]
    means = [
        (features[torch.from_numpy(order.indices(number, 0))] @ state["0.weight"].T + state["0.bias"]).mean(0)
        for number in range(BATCHES)
    ]
    torch.testing.assert_close(state["1.running_mean"], torch.stack(means).mean(0), rtol=1e-4, atol=1e-5)
    later = trainer()
    later.load_weights(tmp_path / "weights.safetensors")
    assert later.weights_sha256() == trained.weights_sha256()
    assert [later.validate(split) for split in ("validation", "test")] == [
        trained.validate(split) for split in ("validation", "test")
    ]


def test_a_snapshot_in_the_middle_goes_on_to_the_bit(tmp_path):
    trained = trainer()
    trained.train(RATES)
    kept = trained.snapshot()
    kept.write(tmp_path / "state")
    outcomes = [(trained.train(RATES), trained.weights_sha256())]
    trained.restore(kept)
    trained.validate()
    outcomes.append((trained.train(RATES), trained.weights_sha256()))
    fresh = trainer()
    fresh.restore(Snapshot.read(tmp_path / "state"))
    outcomes.append((fresh.train(RATES), fresh.weights_sha256()))
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_a_frozen_batch_norm_keeps_its_statistics(tmp_path):
    trained = trainer()
    trained.train(RATES)
    trained.model[1].eval()
    before = trained.model[1].running_mean.clone()
    trained.save_weights(tmp_path / "weights.safetensors")
    assert torch.equal(load_file(tmp_path / "weights.safetensors")["1.running_mean"], before)


def test_other_optimizers_are_scored_as_they_stand():
    plain = Trainer(Line(norm=False), partial(torch.optim.SGD, lr=0.1), TrainerOptions(4))
    plain.train(RATES)
    held_out = Line(norm=False).build_data().validation.tensors
    assert plain.validate()["loss"] == pytest.approx(Line(norm=False).loss(plain.model, held_out).item())
