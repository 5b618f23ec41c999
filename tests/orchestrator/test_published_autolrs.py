"""AutoLRS as published: its stages, its choices, and what it does where the published code breaks."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from orchestrator.learning_rate.drive import drive
from orchestrator.learning_rate.judge import best, judge
from orchestrator.learning_rate.policy import Choice, Forecast, Probe, Probed, RangeFound, Series, Train, Trained
from orchestrator.learning_rate.published import PublishedAutoLRS
from orchestrator.learning_rate.published_plan import PublishedOptions, Stage, plan_stages

CASES = json.loads((Path(__file__).parents[1] / "data" / "autolrs.json").read_text())
GIVEN = {"min_lr": 1e-3, "max_lr": 1.0}


def curve(level, steps, start=2.0):
    """A loss that falls from `start` to `level` within about `steps`."""
    return tuple(level + (start - level) * math.exp(-4 * step / steps) for step in range(steps))


def probed(action, level_of):
    """Outcome of a search probe: `level_of(rate)` is where a rate's loss goes; None diverges."""
    series = []
    for candidate in action.candidates:
        level = level_of(candidate.rate(0))
        series.append(Series((2.0, math.nan) if level is None else curve(level, action.steps)))
    return Probed(tuple(series))


def trained(action):
    return Trained(Series((1.0,) * action.steps))


def first_choice(policy, level_of):
    findings = policy.tell(probed(policy.ask(), level_of))
    return next(finding for finding in findings if isinstance(finding, Choice)), findings


def test_published_stages():
    """Probes of 100, 200, 400, 800 steps for stages of ten times that; then validation losses, sixteen a probe."""
    options = PublishedOptions(stage_steps=1000, max_stage_steps=8000, **GIVEN)
    stages = plan_stages(options, steps=31_000)
    assert [(stage.probe_steps, stage.steps) for stage in stages] == [
        (100, 1000), (200, 2000), (400, 4000), (800, 8000), (800, 8000), (800, 8000),
    ]  # fmt: skip
    assert [stage.first_step for stage in stages] == [0, 1000, 3000, 7000, 15_000, 23_000]
    assert [stage.validate_every for stage in stages] == [None] * 4 + [50, 50]
    assert PublishedAutoLRS(31_000, options=options).cost().probe_steps == 31_000


@pytest.mark.parametrize(("length", "every"), [(1000, 6), (2000, 12), (4000, 25), (8000, 50), (200, 1)])
def test_published_validation_intervals(length, every):
    options = PublishedOptions(stage_steps=length, max_stage_steps=length, **GIVEN)
    assert [stage.validate_every for stage in plan_stages(options, 3 * length)] == [None, every, every]


@pytest.mark.parametrize(
    ("steps", "lengths"),
    [(100, [100]), (200, [200]), (600, [200] * 3), (1600, [200] * 8), (1000, [200] * 5), (6000, [500] * 12)],
)
def test_stages_follow_from_the_budget(steps, lengths):
    stages = plan_stages(PublishedOptions(), steps)
    assert [stage.steps for stage in stages] == lengths
    assert [stage.probe_steps for stage in stages] == [length // 10 for length in lengths]


@pytest.mark.parametrize(("steps", "last"), [(3000, 2000), (3400, 2400), (4000, 1000), (900, 900)])
def test_a_short_rest_joins_the_last_stage(steps, last):
    stages = plan_stages(PublishedOptions(stage_steps=1000, max_stage_steps=2000), steps)
    assert stages[-1].steps == last
    assert sum(stage.steps for stage in stages) == steps


def test_all_rates_are_asked_for_at_once_only_where_losses_do_not_matter():
    assert len(PublishedAutoLRS(200, options=PublishedOptions(**GIVEN)).ask().candidates) == 10
    assert len(PublishedAutoLRS(200, options=PublishedOptions(kappa=1.96, **GIVEN)).ask().candidates) == 1


@pytest.mark.parametrize("kappa", [1e6, 1.96])
def test_chooses_the_lowest_forecast(kappa):
    policy = PublishedAutoLRS(200, options=PublishedOptions(kappa=kappa, **GIVEN))
    forecasts = []
    while isinstance(action := policy.ask(), Probe):
        findings = policy.tell(probed(action, lambda rate: 0.5 + abs(math.log10(rate) + 1)))
        forecasts += [finding for finding in findings if isinstance(finding, Forecast)]
    (choice,) = [finding for finding in findings if isinstance(finding, Choice)]
    assert len(forecasts) == 10
    assert choice.rate == min(forecasts, key=lambda forecast: forecast.loss).rate == action.schedule.rate(0)
    assert abs(math.log10(choice.rate) + 1) < 0.25
    assert len(choice.surrogate) > 20


def test_by_the_loss_reached_a_steep_fall_does_not_beat_a_low_loss():
    """A line from 9 to 3 promises the moon; a probe that stands at 2 has it."""
    falling, low = Series(tuple(np.linspace(9.0, 3.0, 20))), Series((2.0,) * 20)
    rates = {}
    for rank_by in ("forecast", "reached"):
        policy = PublishedAutoLRS(200, options=PublishedOptions(probes=2, probe_share=0.1, rank_by=rank_by, **GIVEN))
        action = policy.ask()
        findings = policy.tell(Probed((falling, low)))
        (choice,) = [finding for finding in findings if isinstance(finding, Choice)]
        rates[rank_by] = [candidate.rate(0) for candidate in action.candidates].index(choice.rate)
    assert rates == {"forecast": 0, "reached": 1}


def test_a_diverged_probe_is_never_chosen():
    policy = PublishedAutoLRS(200, options=PublishedOptions(**GIVEN))
    choice, findings = first_choice(policy, lambda rate: None if rate > 0.1 else 1 - rate)
    assert choice.rate <= 0.1
    assert all(finding.diverged == (finding.rate > 0.1) for finding in findings if isinstance(finding, Forecast))
    assert "diverged" in choice.reason


def test_where_every_probe_diverges_it_trains_below_them_and_searches_lower():
    policy = PublishedAutoLRS(400, options=PublishedOptions(**GIVEN))
    choice, findings = first_choice(policy, lambda rate: None)
    assert choice.rate < 1e-3
    assert "all 10 probes" in choice.reason
    assert isinstance(findings[-1], RangeFound)
    policy.tell(trained(policy.ask()))
    rates = [candidate.rate(0) for candidate in policy.ask().candidates]
    assert max(rates) == pytest.approx(math.sqrt(1e-3), rel=0.01)


def test_a_series_ended_early_counts_as_diverged():
    stage = Stage(1, 0, 200, 20, None)
    assert judge(stage, 0.1, Series(curve(0.5, 20)[:19]), None).diverged
    assert not judge(stage, 0.1, Series(curve(0.5, 20)), None).diverged


def test_a_validation_loss_worse_than_at_the_start_is_not_extrapolated():
    stage = Stage(2, 200, 200, 20, 4)
    validation = tuple((place, 3.0 - place / 20) for place in range(4, 21, 4))
    seen = Series(curve(0.5, 20), validation)
    assert judge(stage, 0.1, seen, first_loss=2.5).loss == validation[-1][1]
    assert judge(stage, 0.1, seen, first_loss=5.0).loss < validation[-1][1]


def test_training_losses_decide_where_nothing_was_validated():
    stage = Stage(2, 200, 200, 20, 4)
    seen = Series(curve(0.5, 20))
    assert judge(stage, 0.1, seen, None) == judge(Stage(2, 200, 200, 20, None), 0.1, seen, None)


def run_stages(policy, level_of, stages):
    """Carry out whole stages; a range test sees a loss that never runs away."""
    findings = []
    while stages and (action := policy.ask()) is not None:
        match action:
            case Probe(purpose="range_test"):
                findings += policy.tell(Probed((Series(curve(1.0, action.steps)),)))
            case Probe():
                findings += policy.tell(probed(action, level_of))
            case Train():
                findings += policy.tell(trained(action))
                stages -= 1
    return findings


def test_a_bound_chosen_twice_extends_an_interval_that_was_found():
    findings = run_stages(PublishedAutoLRS(600), lambda rate: 1 - rate / 20, stages=2)
    found, extended = [finding for finding in findings if isinstance(finding, RangeFound)]
    assert (extended.low, extended.high) == pytest.approx((found.low, 3 * found.high))
    assert "two stages running" in extended.reason


def test_a_bound_chosen_twice_is_only_reported_where_the_interval_was_given():
    findings = run_stages(PublishedAutoLRS(600, options=PublishedOptions(**GIVEN)), lambda rate: 1 - rate, stages=2)
    (note,) = [finding for finding in findings if isinstance(finding, RangeFound)]
    assert (note.low, note.high) == (1e-3, 1.0)
    assert "lr.max_lr" in note.reason


def test_a_training_that_diverges_lowers_the_interval():
    policy = PublishedAutoLRS(400, options=PublishedOptions(**GIVEN))
    choice, _ = first_choice(policy, lambda rate: 1 - rate)
    (lowered,) = policy.tell(Trained(Series((1.0, math.nan))))
    assert (lowered.low, lowered.high) == pytest.approx((1e-3, choice.rate / 2))
    assert "diverged" in lowered.reason


@pytest.mark.parametrize(
    ("rank_by", "seen", "bar"),
    [("forecast", 40, 0.065), ("forecast", 100, 0.125), ("reached", 40, 0.02), ("reached", 100, 0.05)],
)
def test_regret_on_real_trainings(rank_by, seen, bar):
    """Rates of 46 real trainings, tried for a tenth and a quarter of 400 steps: how much worse the choice ends."""
    groups = {}
    for case in CASES["real"]:
        groups.setdefault((case["task"], case["seed"], case["state_step"]), []).append(case)
    stage = Stage(1, 0, 400, seen, None)
    regrets = []
    for cases in groups.values():
        verdicts = [judge(stage, case["lr"], Series(tuple(case["train_loss"][:seen])), None) for case in cases]
        rate = best(verdicts, rank_by).rate
        chosen = next(case for case in cases if case["lr"] == rate)
        regrets.append(chosen["true_val_at_tau"] - min(case["true_val_at_tau"] for case in cases))
    assert np.mean(regrets) <= bar


class NoisyQuadratic:
    """Gradient descent on ½·h·w² in two directions with noisy gradients; it diverges above a rate of 2."""

    curvatures = np.array([1.0, 0.01])

    def __init__(self):
        self.param_groups = [{"lr": math.nan}]
        self.weights = np.array([3.0, 10.0])
        self.random = np.random.default_rng(0)

    def state_dict(self):
        return {"weights": self.weights}

    def load_state_dict(self, state):
        self.weights = state["weights"]

    def loss(self):
        return float(self.curvatures @ self.weights**2 / 2)

    def step(self):
        loss = self.loss()
        gradient = self.curvatures * (self.weights + 0.1 * self.random.normal(size=2))
        self.weights = self.weights - self.param_groups[0]["lr"] * gradient
        return loss


def test_finds_a_good_rate_by_itself_on_a_noisy_quadratic():
    """From a range test to the end, with no rate given, it comes close to the best of seven constant rates."""

    def constant(rate):
        problem = NoisyQuadratic()
        problem.param_groups[0]["lr"] = rate
        for _ in range(600):
            problem.step()
        return problem.loss()

    problem = NoisyQuadratic()
    history = drive(PublishedAutoLRS(steps=600), problem.step, problem, validate=problem.loss)
    best = min(constant(rate) for rate in (1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0))
    assert len(history.rates) == 600
    assert max(history.rates) < 2
    assert problem.loss() < 2 * best + 0.01
