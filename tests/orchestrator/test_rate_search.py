"""The rate search on known objectives, on losses that break optimisers, and without scikit-optimize."""

import json
import math
import sys
from functools import lru_cache

import numpy as np
import pytest

from orchestrator.learning_rate import search as search_module
from orchestrator.learning_rate.gaussian_process import GaussianProcess
from orchestrator.learning_rate.search import FILLING, RateSearch

BEST = 10**-1.5


def bowl(rate):
    return math.log10(rate / BEST) ** 2


def run(search, objective, probes=10):
    for _ in range(probes):
        (rate,) = search.ask()
        search.tell(rate, objective(rate))
    return search


@pytest.fixture(params=["skopt", "own", "as AutoLRS uses it"])
def engine(request, monkeypatch):
    """Every surrogate; the second by an installation where scikit-optimize cannot be imported."""
    search_module._engine.cache_clear()
    if request.param == "own":
        monkeypatch.setitem(sys.modules, "skopt", None)
        monkeypatch.delitem(sys.modules, "orchestrator.learning_rate.skopt_process", raising=False)
        monkeypatch.delattr("orchestrator.learning_rate.skopt_process", raising=False)
        with pytest.warns(UserWarning, match="pip install"):
            search_module._engine()
    if request.param == "as AutoLRS uses it":
        process = GaussianProcess(length=1 / 6, candidates=241, apart=0.04)
        monkeypatch.setattr(search_module, "_engine", lru_cache(lambda: process))
    yield request.param
    search_module._engine.cache_clear()


def test_finds_the_bottom_of_a_bowl(engine):
    search = run(RateSearch(1e-3, 1, seed=1, kappa=1.96), bowl)
    best = min(search.points, key=lambda point: point[1])[0]
    assert abs(math.log10(best / BEST)) < 0.1


def test_large_kappa_fills_the_interval_with_both_ends(engine):
    positions = sorted(math.log10(rate) for rate in RateSearch(1e-3, 1, seed=1).ask(10))
    assert positions[0] < -2.95
    assert positions[-1] > -0.05
    assert max(np.diff(positions)) < 0.6


@pytest.mark.parametrize("seed", [0, 1])
def test_at_large_kappa_asking_at_once_equals_asking_one_by_one(engine, seed):
    at_once = RateSearch(1e-3, 1, seed).ask(10)
    one_by_one = run(RateSearch(1e-3, 1, seed), bowl)
    assert at_once == [rate for rate, _ in one_by_one.points]


def test_the_losses_do_not_matter_to_the_process_at_large_kappa():
    """What justifies leaving them out: told or not, the fixed process proposes the same rates."""
    from orchestrator.learning_rate.skopt_process import lowest_bound

    x, y = np.array([0.7, 0.0, 1.0, 0.3]), np.array([2.0, 1.0, 5.0, 1.5])
    told = lowest_bound(x, y, 1e6, fixed_kernel=True, seed=0)
    assert lowest_bound(x, np.zeros(4), 1e6, fixed_kernel=True, seed=0) == pytest.approx(told, abs=1e-3)


def test_seeds_decide(engine):
    assert RateSearch(1e-3, 1, seed=1).ask(3) == RateSearch(1e-3, 1, seed=1).ask(3)
    assert RateSearch(1e-3, 1, seed=1).ask(1) != RateSearch(1e-3, 1, seed=2).ask(1)


@pytest.mark.parametrize("kappa", [1.96, FILLING])
def test_continues_equally_from_json(engine, kappa):
    search = run(RateSearch(1e-3, 1, seed=4, kappa=kappa), bowl, probes=4)
    search.tell(0.9, math.nan)
    later = RateSearch(1e-3, 1, seed=4, kappa=kappa)
    later.load_state(json.loads(json.dumps(search.state(), allow_nan=False)))
    assert later.ask(2) == search.ask(2)
    assert later.curve() == search.curve()


@pytest.mark.parametrize("losses", [[1.0, math.nan, math.inf, 2.0], [math.nan] * 4, [1.0] * 8, [1e300, 1.0, -1e300]])
def test_survives_any_losses(engine, losses):
    search = RateSearch(1e-3, 1, seed=0, kappa=1.96)
    for loss in losses:
        (rate,) = search.ask()
        assert 1e-3 <= rate <= 1
        search.tell(rate, np.float64(loss))
    assert len({rate for rate, _ in search.points}) == len(losses)
    assert np.isfinite(search.curve()).all()


def test_survives_equal_rates_and_rates_beyond_the_interval(engine):
    search = RateSearch(1e-3, 1, seed=0, kappa=1.96)
    for rate in (1.0000000001, 1.0, 1.0, 1e-9):
        search.tell(rate, 1.0)
    assert 1e-3 <= search.ask()[0] <= 1


def test_the_surrogate_follows_the_losses(engine):
    curve = run(RateSearch(1e-3, 1, seed=0), bowl).curve()
    rates, means, deviations = zip(*curve, strict=True)
    assert abs(math.log10(rates[int(np.argmin(means))] / BEST)) < 0.3
    assert min(deviations) >= 0
    assert (rates[0], rates[-1]) == pytest.approx((1e-3, 1))


def test_diverged_rates_do_not_flatten_the_surrogate(engine):
    """They count as somewhat worse than the worst, so that the others still differ."""
    curve = run(RateSearch(1e-3, 1, seed=0), lambda rate: math.inf if rate > 0.1 else bowl(rate)).curve()
    means = [mean for _, mean, _ in curve]
    assert max(means) < 6
    assert means[-1] > 2 * means[0] - 1
    assert min(means) < 0.5
