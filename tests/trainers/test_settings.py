"""Settings that hold for some steps: the same as an optimizer made with them, and gone with the next steps."""

from functools import partial

import pytest
import torch
from schedulefree import AdamWScheduleFree, SGDScheduleFree

from trainers import Trainer, TrainerOptions
from trainers.errors import DataError
from trainers.models.mlp import Mlp
from trainers.settings import OptimizerSettings
from trainers.tasks.tabular import Tabular

RATES = [0.01] * 6
MADE = {
    "AdamW": (partial(torch.optim.AdamW, weight_decay=0.04, betas=(0.9, 0.99)), {"betas": (0.8, 0.99)}),
    "SGD": (partial(torch.optim.SGD, weight_decay=0.04, momentum=0.9), {"momentum": 0.8}),
    "Schedule-Free AdamW": (partial(AdamWScheduleFree, weight_decay=0.04, betas=(0.9, 0.99)), {"betas": (0.8, 0.99)}),
    "Schedule-Free SGD": (partial(SGDScheduleFree, weight_decay=0.04, momentum=0.9), {"momentum": 0.8}),
}


def trainer(optimizer, batch_size=8, **options):
    return Trainer(Tabular(partial(Mlp, width=16, layers=1), "wine"), optimizer, TrainerOptions(batch_size, **options))


def outcome(trained, settings):
    return trained.train(RATES, settings), trained.weights_sha256()


@pytest.mark.parametrize("name", MADE)
def test_steps_are_those_of_an_optimizer_made_with_them(name):
    optimizer, slower = MADE[name]
    found = outcome(trainer(optimizer), {"weight_decay": 0.5, "momentum": 2.0})
    losses, weights = outcome(trainer(partial(optimizer, weight_decay=0.02, **slower)), {})
    assert found[0] == pytest.approx(losses, rel=1e-5)  # 1 − (1 − 0.9)·2 is 0.8 but for a bit
    plain = outcome(trainer(optimizer), {})
    assert plain[1] not in (weights, found[1])


def test_they_hold_for_the_steps_they_came_with_whatever_was_restored():
    optimizer = MADE["AdamW"][0]
    trained = trainer(optimizer)
    start = trained.snapshot()
    plain = outcome(trained, {})
    trained.restore(start)
    changed = outcome(trained, {"weight_decay": 10.0})
    after_changed = trained.snapshot()
    trained.restore(start)
    assert outcome(trained, {}) == plain
    trained.restore(start)
    assert outcome(trained, {"weight_decay": 10.0}) == changed
    expected = outcome(trained, {"weight_decay": 10.0})
    later = trainer(optimizer)
    later.restore(after_changed)
    assert outcome(later, {"weight_decay": 10.0}) == expected


def test_each_group_changes_from_what_it_was_made_with():
    weight, bias = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
    groups = [{"params": [weight], "weight_decay": 0.1}, {"params": [bias], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.95))
    settings = OptimizerSettings(optimizer)
    for factor, found in ((10.0, [1.0, 0.0]), (0.1, [pytest.approx(0.01), 0.0]), (1.0, [0.1, 0.0])):
        settings.use({"weight_decay": factor})
        assert [group["weight_decay"] for group in optimizer.param_groups] == found
    settings.use({"momentum": 0.5})
    assert [group["betas"] for group in optimizer.param_groups] == 2 * [(pytest.approx(0.95), 0.95)]
    settings.use({})
    assert [group["betas"] for group in optimizer.param_groups] == 2 * [(0.9, 0.95)]


@pytest.mark.parametrize(("accumulate", "factor"), [(1, 0.5), (1, 2.0), (2, 0.5), (2, 2.0), (3, 0.5)])
def test_a_batch_of_another_size_is_that_batch(accumulate, factor):
    """Its samples, in its order; their mean loss, whatever the parts are that it comes in."""
    found = outcome(trainer(torch.optim.SGD, accumulate=accumulate), {"batch_size": factor})
    whole = outcome(trainer(torch.optim.SGD, batch_size=int(8 * accumulate * factor)), {})
    assert found[0] == pytest.approx(whole[0], rel=1e-5)


def test_what_an_optimizer_does_not_have_is_a_sentence():
    with pytest.raises(DataError, match=r"lr\.also has momentum, which Adagrad does not have"):
        trainer(torch.optim.Adagrad).train(RATES, {"momentum": 2.0})


def test_half_of_an_odd_batch_is_a_sentence():
    with pytest.raises(DataError, match="5 samples a step have no half"):
        trainer(torch.optim.SGD, batch_size=5).train(RATES, {"batch_size": 0.5})
