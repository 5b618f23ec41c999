"""What people report of other searches for a learning rate, each by its symptom and where it was reported."""

import math
import sys
import warnings
from collections.abc import Callable

import numpy as np
import pytest

from orchestrator.errors import UserError
from orchestrator.learning_rate import AutoLRS
from orchestrator.learning_rate import search as search_module
from orchestrator.learning_rate.forecast import forecast
from orchestrator.learning_rate.policy import Choice, Finding, Probe, Probed, Series, Trained
from orchestrator.learning_rate.search import RateSearch

X = np.arange(100.0)
ODD_SERIES = {
    "clean": 2 * np.exp(-0.02 * X) + 0.5,
    "constant": np.ones(100),
    "zeros": np.zeros(100),
    "linear": 3 - 0.01 * X,
    "diverging": np.exp(X),
    "sawtooth": 1 + X % 10,
    "one inf": np.where(X == 50, math.inf, 1.0),
    "one nan": np.where(X == 50, math.nan, 1.0),
    "one spike": np.where(X == 50, 1e8, 2 * np.exp(-0.02 * X)),
    "three points": np.array([3.0, 2.0, 1.0]),
    "six points": np.array([3, 2.5, 2.2, 2, 1.9, 1.85]),
    "one point": np.array([2.0]),
    "nothing": np.array([]),
}


def findings_of(loss: Callable[[float, int], float]) -> list[Finding]:
    """What a search of 800 steps finds where the loss is a function of rate and step."""
    policy, findings = AutoLRS(800), list[Finding]()
    while (action := policy.ask()) is not None:
        if isinstance(action, Probe):
            tried = [
                tuple(loss(each.peak, step) for step in range(action.taken, action.taken + action.steps))
                for each in action.candidates
            ]
            findings += policy.tell(Probed(tuple(Series(each, ((action.steps, each[-1]),)) for each in tried)))
        else:
            findings += policy.tell(Trained(Series((1.0,) * action.steps)))
    return findings


def choice_of(findings: list[Finding]) -> Choice:
    (choice,) = [each for each in findings if isinstance(each, Choice)]
    return choice


def test_nan_objective_does_not_kill_the_search_scikit_optimize_482() -> None:
    search = RateSearch(1e-4, 1.0, kappa=1.96)
    for loss in (1.0, math.nan, math.inf, 2.0):
        search.tell(search.ask()[0], loss)
    assert 1e-4 <= search.ask()[0] <= 1.0
    assert np.isfinite(search.curve()).all()


def test_equal_values_do_not_kill_the_search_scikit_optimize_994() -> None:
    search = RateSearch(1e-4, 1.0, kappa=1.96)
    for _ in range(8):
        search.tell(search.ask()[0], 1.0)
    assert 1e-4 <= search.ask()[0] <= 1.0


def test_a_library_that_cannot_be_imported_costs_one_warning_scikit_optimize_1138(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    search_module._engine.cache_clear()
    monkeypatch.setitem(sys.modules, "skopt", None)
    monkeypatch.delitem(sys.modules, "orchestrator.learning_rate.skopt_process", raising=False)
    monkeypatch.delattr("orchestrator.learning_rate.skopt_process", raising=False)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        rates = RateSearch(1e-4, 1.0).ask(5)
    search_module._engine.cache_clear()
    assert len(set(rates)) == 5
    assert [str(each.message).split()[0] for each in told] == ["scikit-optimize"]


def test_a_nan_trial_never_becomes_the_best_ray_11670() -> None:
    """The rate that would win gives a NaN halfway, at any of its trials."""

    def loss(rate: float, step: int) -> float:
        return math.nan if rate > 0.02 and step > 5 else 3.0 - 100 * rate - 0.001 * step

    findings = findings_of(loss)
    assert choice_of(findings).rate <= 0.02
    assert any(getattr(each, "diverged", False) for each in findings)


def test_a_task_without_a_usable_loss_ends_in_a_sentence_katib_849() -> None:
    """Instead of one that runs for ever and is never scored."""
    with pytest.raises(UserError, match="not finite at the very first step"):
        findings_of(lambda rate, step: math.nan)


@pytest.mark.parametrize("name", ODD_SERIES)
def test_no_series_crashes_the_forecast_or_takes_it_to_absurd_values_autolrs(name: str) -> None:
    series = ODD_SERIES[name]
    found = forecast(series.tolist(), at=1000)
    finite = series[np.isfinite(series)]
    assert 0 <= found.loss <= finite.max(initial=0.0)
    assert found.diverged == (name in ("diverging", "one inf", "one nan", "nothing"))
