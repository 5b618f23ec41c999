"""Schedule-Free Muon: orthogonal steps for matrices, Schedule-Free AdamW's for the rest, one average of both."""

from functools import partial

import pytest
import torch
from averaging_rank import Line
from schedulefree import AdamWScheduleFree
from torch import nn

from trainers import Trainer, TrainerOptions
from trainers.frozen import freeze
from trainers.models.transformer import Transformer
from trainers.muon import ADAMS, ScheduleFreeMuon, orthogonal

MUON = partial(ScheduleFreeMuon, weight_decay=0.01)


@pytest.mark.parametrize("shape", [(16, 16), (64, 8), (8, 64), (1, 5)])
def test_singular_values_come_near_one_and_directions_stay(shape):
    matrices = torch.randn(3, *shape, generator=torch.Generator().manual_seed(0))
    near = orthogonal(matrices)
    left, before, right = torch.linalg.svd(matrices, full_matrices=False)
    turned = left.mT @ near @ right.mT
    after = torch.diagonal(turned, dim1=-2, dim2=-1)
    assert (turned - torch.diag_embed(after)).abs().max() < 1e-4
    big = before > 0.02 * before.norm(dim=-1, keepdim=True)  # five iterations bring smaller ones part of the way
    assert after[big].min() > 0.6
    assert after.max() < 1.3


def test_matrices_of_one_shape_do_not_touch_each_other():
    matrices = torch.randn(4, 6, 9)
    torch.testing.assert_close(orthogonal(matrices), torch.cat([orthogonal(each[None]) for each in matrices]))


def test_where_there_is_no_matrix_it_is_schedule_free_adamw():
    options = {"lr": 0.02, "betas": (0.8, 0.99), "weight_decay": 0.01, "r": 0.5}
    weights = []
    for make in (ScheduleFreeMuon, AdamWScheduleFree):
        torch.manual_seed(3)
        model, inputs = nn.Linear(4, 2), torch.randn(6, 4)
        optimizer = make(model.parameters(), **options)
        optimizer.train()
        for _ in range(20):
            optimizer.zero_grad()
            (model(inputs) - 1).pow(2).mean().backward()
            optimizer.step()
        points = nn.utils.parameters_to_vector(model.parameters()).detach()
        optimizer.eval()
        weights.append(torch.cat([points, nn.utils.parameters_to_vector(model.parameters()).detach()]))
    torch.testing.assert_close(*weights, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("layer", [nn.Linear(6, 4, bias=False), nn.Conv2d(2, 4, 3, bias=False)])
def test_a_matrix_moves_by_its_orthogonal_momentum(layer):
    before = layer.weight.detach().clone()
    optimizer = ScheduleFreeMuon(ScheduleFreeMuon.groups_of(layer), lr=0.1)
    optimizer.train()
    layer.weight.grad = torch.randn_like(layer.weight)
    optimizer.step()
    optimizer.eval()  # after one step the average is the iterate itself
    flat = layer.weight.grad.flatten(1)
    expected = before.flatten(1) - 0.1 * ADAMS * max(flat.shape) ** 0.5 * orthogonal(flat[None])[0]
    torch.testing.assert_close(layer.weight.detach().flatten(1), expected, rtol=1e-4, atol=1e-5)


def test_what_counts_as_a_matrix():
    model = Transformer(vocabulary=11, width=8, layers=1, heads=2, key_value_heads=1)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    matrices, others = ScheduleFreeMuon.groups_of(model)
    assert matrices["matrix"]
    assert not others["matrix"]
    assert {names[id(each)].split(".")[-2] for each in matrices["params"]} == {
        "queries", "keys", "values", "output", "gate", "up", "down",
    }  # fmt: skip
    assert "embedding.weight" in {names[id(each)] for each in others["params"]}  # which the output shares
    assert len(matrices["params"]) + len(others["params"]) == len(names)
    freeze(model.blocks)
    assert [group["matrix"] for group in ScheduleFreeMuon.groups_of(model)] == [False]


def test_steps_outside_its_train_mode_are_refused():
    layer = nn.Linear(2, 2)
    optimizer = ScheduleFreeMuon(ScheduleFreeMuon.groups_of(layer))
    with pytest.raises(RuntimeError, match="not in its train mode"):
        optimizer.step()


@pytest.mark.parametrize("betas", [(0, 0.9), (1.1, 0.9), (0.8, 1.0), (0.8, -0.1)])
def test_betas_out_of_range_are_refused(betas):
    with pytest.raises(ValueError, match="set the first above 0"):
        ScheduleFreeMuon(nn.Linear(2, 2).parameters(), betas=betas)


def test_a_trainer_goes_on_to_the_bit(tmp_path):
    rates = [0.02] * 6
    options = TrainerOptions(4, clip=1.0)
    whole = Trainer(Line(norm=True), MUON, options)
    whole.train(rates)
    whole.snapshot().write(tmp_path / "state.safetensors")
    whole.validate()
    expected = whole.train(rates)
    other = Trainer(Line(norm=True), MUON, options)
    other.restore(type(whole.snapshot()).read(tmp_path / "state.safetensors"))
    assert other.train(rates) == expected
    assert other.weights_sha256() == whole.weights_sha256()
