"""Adam with hypergradient descent: torch's Adam at a fixed rate, and a rate that follows the loss's own derivative."""

import pytest
import torch
from torch import nn

from trainers.hypergradient import HypergradientAdam


def tiny():
    torch.manual_seed(3)
    return nn.Linear(4, 2).double(), torch.randn(6, 4, dtype=torch.float64)


def loss_of(model, inputs):
    return (model(inputs) - 1).pow(2).mean()


def trained(optimizer_of, steps):
    model, inputs = tiny()
    optimizer = optimizer_of(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        loss_of(model, inputs).backward()
        optimizer.step()
    return model, optimizer


def weights_of(model):
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def test_with_a_fixed_rate_it_is_adam():
    ours, _ = trained(lambda parameters: HypergradientAdam(parameters, lr=0.01, hypergradient_lr=0.0), 50)
    theirs, _ = trained(lambda parameters: torch.optim.Adam(parameters, lr=0.01), 50)
    torch.testing.assert_close(weights_of(ours), weights_of(theirs), rtol=1e-10, atol=1e-12)


def test_the_rate_moves_against_the_losss_derivative_by_the_last_rate():
    """The derivative by finite differences: the last step repeated at rates a little lower and higher."""
    _, inputs = tiny()

    def loss_at(rate):
        def optimizer_of(parameters):
            return HypergradientAdam(parameters, lr=rate, hypergradient_lr=0.0)

        return loss_of(trained(optimizer_of, 1)[0], inputs).item()

    derivative = (loss_at(0.01 + 1e-6) - loss_at(0.01 - 1e-6)) / 2e-6
    _, optimizer = trained(lambda parameters: HypergradientAdam(parameters, lr=0.01, hypergradient_lr=1e-3), 2)
    assert optimizer.param_groups[0]["gain"] == pytest.approx(-1e-3 * derivative, rel=1e-6)


def test_a_rate_that_is_too_small_grows():
    small = 1e-5
    plain, _ = trained(lambda parameters: HypergradientAdam(parameters, lr=small, hypergradient_lr=0.0), 100)
    ours, optimizer = trained(lambda parameters: HypergradientAdam(parameters, lr=small, hypergradient_lr=1e-4), 100)
    _, inputs = tiny()
    assert optimizer.param_groups[0]["gain"] > 10 * small
    assert loss_of(ours, inputs) < loss_of(plain, inputs)
