"""Intervals from range tests: clean, noisy, spiky, stopped early, and with nothing diverging."""

import math

import numpy as np
import pytest

from orchestrator.learning_rate.range_test import interval_from
from orchestrator.learning_rate.schedules import Exponential

SCHEDULE = Exponential(1e-6, 10, 100)
RATES = [SCHEDULE.rate(step) for step in range(100)]


def losses(explodes_at, noise=0.0, seed=0):
    """A loss that falls with log rate and blows up like a cliff beyond `explodes_at`."""
    progress = np.log10(np.array(RATES) / RATES[0]) / 7
    beyond = np.clip(np.log(np.array(RATES) / explodes_at), 0, None)
    return 2.3 - progress + beyond * 4 + noise * np.random.default_rng(seed).normal(size=100)


@pytest.mark.parametrize("explodes_at", [1e-3, 0.03, 1.0])
@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_high_end_lies_at_the_cliff(explodes_at, noise, seed):
    found, diverged = interval_from(RATES, losses(explodes_at, noise, seed).tolist())
    assert diverged
    assert explodes_at / 2 <= found.high <= explodes_at * 2
    assert found.low == pytest.approx(found.high / 1000)


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_nothing_diverges(noise):
    found, diverged = interval_from(RATES, losses(100.0, noise).tolist())
    assert not diverged
    assert found.high == RATES[-1]


def test_one_bad_batch_is_no_divergence():
    series = losses(1.0).tolist()
    series[30] = 1e6
    assert interval_from(RATES, series) == interval_from(RATES, losses(1.0).tolist())


@pytest.mark.parametrize("ending", [[], [math.nan], [math.inf, math.inf]])
def test_a_test_that_broke_off(ending):
    found, diverged = interval_from(RATES, [2.3 - 0.001 * step for step in range(60)] + ending)
    assert diverged
    assert found.high == pytest.approx(RATES[60] / 2)


def test_losses_near_zero_and_flat_ones():
    assert not interval_from(RATES, [0.0] * 100)[1]
    assert not interval_from(RATES, [1.0] * 100)[1]


@pytest.mark.parametrize("series", [[], [math.nan], [1.0], [1.0, math.nan]])
def test_a_test_that_breaks_at_once_still_gives_an_interval(series):
    found, diverged = interval_from(RATES, series)
    assert 0 < found.low < found.high <= RATES[-1]
    assert diverged


def test_noise_is_no_divergence_where_the_loss_is_small():
    """Batches that differ by more than half the loss itself, as late in a training."""
    noise = np.abs(np.random.default_rng(0).normal(size=100))
    assert not interval_from(RATES, (0.01 + 0.02 * noise).tolist())[1]
