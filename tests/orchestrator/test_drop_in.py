"""AutoLRS in a plain PyTorch loop: the ten lines that a person adds, on real data."""

import copy
import itertools
import textwrap

import pytest
import torch
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


@pytest.fixture
def loop():
    """What a person already has: a model, an optimizer, batches without end, a held-out loss."""
    torch.manual_seed(0)
    inputs, labels = digits()
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 32), torch.nn.BatchNorm1d(32), torch.nn.ReLU(), torch.nn.Linear(32, 10)
    )
    order = torch.Generator().manual_seed(1)

    def draw():
        for _ in itertools.count():
            chosen = torch.randint(1400, (32,), generator=order)
            yield inputs[chosen], labels[chosen]

    @torch.no_grad()
    def validation_loss():
        model.eval()
        loss = functional.cross_entropy(model(inputs[1400:]), labels[1400:]).item()
        model.train()
        return loss

    optimizer = torch.optim.SGD(model.parameters(), lr=1e9, momentum=0.9)  # a rate that must never be used
    return {
        "functional": functional,
        "model": model,
        "optimizer": optimizer,
        "batches": draw(),
        "validation_loss": validation_loss,
    }


def test_ten_lines_train_a_model(loop):
    assert len([line for line in TEN_LINES.splitlines() if line]) <= 10
    start = loop["validation_loss"]()
    exec(textwrap.dedent(TEN_LINES), loop)
    history = loop["history"]
    assert len(history.rates) == len(history.losses) == 300
    assert loop["validation_loss"]() < start / 4
    assert history.validation[-1] == (300, loop["validation_loss"]())
    assert any(isinstance(finding, Choice) for finding in history.findings)


def test_probes_leave_no_trace(loop):
    """With the same batches, a run with probes at the very rate it trains with equals one without probes."""
    model, optimizer = loop["model"], loop["optimizer"]
    begin = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    inputs, labels = digits()

    def step():
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(inputs[:64]), labels[:64])
        loss.backward()
        optimizer.step()
        return loss.item()

    options = AutoLRSOptions(min_lr=1e-3, max_lr=0.3, probes=3, stages=2)
    searched = drive(AutoLRS(steps=40, options=options), step, optimizer, model)
    after_search = copy.deepcopy(model.state_dict())
    model.load_state_dict(begin[0])
    optimizer.load_state_dict(begin[1])
    replayed = []
    for rate in searched.rates:
        optimizer.param_groups[0]["lr"] = rate
        replayed.append(step())
    assert replayed == searched.losses
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in after_search.items())


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

    policy = AutoLRS(steps=100, options=AutoLRSOptions(min_lr=1e-3, max_lr=1.0))
    history = drive(policy, step, optimizer, loop["model"])
    assert max(history.rates) <= 0.05
    broken = [rate for rate in steps_taken if rate > 0.05]
    assert len(broken) == len(set(broken)) > 0
