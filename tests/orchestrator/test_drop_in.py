"""AutoLRS in a plain PyTorch loop: the ten lines that a person adds, on real data."""

import copy
import textwrap

import pytest
import torch
from schedulefree import AdamWScheduleFree
from sklearn.datasets import load_digits
from torch.nn import functional

from orchestrator.learning_rate import AutoLRS, AutoLRSOptions, drive, make_policy
from orchestrator.learning_rate.policy import Choice

TEN_LINES = """\
from orchestrator.learning_rate import AutoLRS, drive

def step():
    inputs, labels = next(batches)
    optimizer.zero_grad()
    loss = functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss.item()
history = drive(AutoLRS(steps=300), step, optimizer, model, validate=validation_loss)
"""


def digits():
    inputs, labels = load_digits(return_X_y=True)
    return torch.tensor(inputs, dtype=torch.float32) / 16, torch.tensor(labels)


class Batches:
    """Batches without end, at a position that can be kept."""

    def __init__(self, inputs, labels):
        self.inputs, self.labels, self.position = inputs, labels, 0

    def __next__(self):
        order = torch.Generator().manual_seed(self.position)
        self.position += 1
        chosen = torch.randint(1400, (32,), generator=order)
        return self.inputs[chosen], self.labels[chosen]

    def state_dict(self):
        return self.position

    def load_state_dict(self, position):
        self.position = position


OPTIMIZERS = {  # each with a rate that must never be used
    "Schedule-Free": lambda parameters: AdamWScheduleFree(parameters, lr=1e9, betas=(0.8, 0.99)),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=1e9),
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=1e9, momentum=0.9),
}


@pytest.fixture(params=OPTIMIZERS)
def loop(request):
    """What a person already has: a model, an optimizer, batches without end, a held-out loss."""
    torch.set_num_threads(1)  # the fastest for a model of this size
    torch.manual_seed(0)
    inputs, labels = digits()
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))

    @torch.no_grad()
    def validation_loss():
        return functional.cross_entropy(model(inputs[1400:]), labels[1400:]).item()

    return {
        "functional": functional,
        "model": model,
        "optimizer": OPTIMIZERS[request.param](model.parameters()),
        "batches": Batches(inputs, labels),
        "validation_loss": validation_loss,
    }


def stepper(loop):
    """The step of the ten lines."""
    model, optimizer = loop["model"], loop["optimizer"]

    def step():
        inputs, labels = next(loop["batches"])
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def test_ten_lines_train_a_model(loop):
    assert len([line for line in TEN_LINES.splitlines() if line]) <= 10
    start = loop["validation_loss"]()
    exec(textwrap.dedent(TEN_LINES), loop)
    history = loop["history"]
    assert len(history.rates) == len(history.losses) == 300
    assert loop["validation_loss"]() < start / 4
    assert history.validation[-1] == (300, pytest.approx(loop["validation_loss"](), rel=1e-5))
    assert any(isinstance(finding, Choice) for finding in history.findings)


@pytest.mark.parametrize("steps", [300, 600])
def test_the_winners_steps_are_the_runs_own(loop, steps):
    """A run with a search equals one that takes the same steps at the same rates and never searches."""
    model, optimizer, batches = loop["model"], loop["optimizer"], loop["batches"]
    begin = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    searched = drive(AutoLRS(steps), stepper(loop), optimizer, model, batches)
    after_search = copy.deepcopy(model.state_dict())
    model.load_state_dict(begin[0])
    optimizer.load_state_dict(begin[1])
    batches.position = 0
    getattr(optimizer, "train", lambda: None)()
    replayed, step = [], stepper(loop)
    for rate in searched.rates:
        optimizer.param_groups[0]["lr"] = rate
        replayed.append(step())
    getattr(optimizer, "eval", lambda: None)()
    assert len(searched.rates) == batches.position == steps
    assert replayed == searched.losses
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in after_search.items())


def test_all_rates_see_the_same_batches(loop):
    seen = []

    def step():
        seen.append(loop["batches"].position)
        return plain_step()

    plain_step = stepper(loop)
    drive(AutoLRS(300), step, loop["optimizer"], loop["model"], loop["batches"])
    assert seen[:80] == 4 * list(range(20))
    assert seen[80:] == list(range(20, 300))


def test_drives_any_policy(loop):
    def step():
        seen.append(optimizer.param_groups[0]["lr"])
        return 1.0

    optimizer, seen = loop["optimizer"], []
    history = drive(make_policy({"name": "step", "rate": 0.1, "drops": 1}, steps=20), step, optimizer, loop["model"])
    assert history.rates == seen == pytest.approx([0.1] * 10 + [0.01] * 10)


def test_a_probe_that_breaks_ends_at_once(loop):
    """Rates above 0.05 give a loss that is no number; the search takes one step with each, and chooses another."""
    optimizer, steps_taken = loop["optimizer"], []

    def step():
        rate = optimizer.param_groups[0]["lr"]
        steps_taken.append(rate)
        return float("nan") if rate > 0.05 else 1.0 - rate

    policy = AutoLRS(steps=300, options=AutoLRSOptions(min_lr=1e-3, max_lr=1.0))
    history = drive(policy, step, optimizer, loop["model"])
    assert max(history.rates) <= 0.05
    broken = [rate for rate in steps_taken if rate > 0.05]
    assert len(broken) == len(set(broken)) > 0


def test_an_averaging_optimizer_is_validated_as_its_average():
    """Its mode is right in each call, whoever wrote `validate`, and the model is left holding the average."""
    model = torch.nn.Linear(1, 1)
    optimizer = AdamWScheduleFree(model.parameters(), lr=1.0)
    modes = []

    def step():
        optimizer.zero_grad()
        loss = (model(torch.ones(1, 1)) - 3).square().sum()
        loss.backward()
        optimizer.step()
        return loss.item()

    def validate():
        modes.append(optimizer.param_groups[0]["train_mode"])
        return (model(torch.ones(1, 1)) - 3).square().item()

    drive(AutoLRS(steps=200), step, optimizer, model, validate=validate)
    assert set(modes) == {False}
    assert not optimizer.param_groups[0]["train_mode"]
