"""AutoLRS: the arms of its search, its choices, its budgets, and what it says of losses that make no sense."""

import json
import math

import numpy as np
import pytest
import torch
from schedulefree import AdamWScheduleFree
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern

from orchestrator.errors import UserError
from orchestrator.learning_rate import AutoLRS, AutoLRSOptions
from orchestrator.learning_rate.gaussian_process import GaussianProcess
from orchestrator.learning_rate.policy import Choice, Forecast, Probe, Probed, RangeFound, Series, Train, Trained
from orchestrator.learning_rate.rungs import plan_search
from orchestrator.learning_rate.schedules import InversePower, Linear

FOUR = [7.499e-3, 1.334e-3, 4.217e-2, 2.371e-4]  # the middles of four equal parts of 1e-4 … 1e-1


def learning(best, noise=0.0):
    """Losses of a task that learns fastest at the rate `best`: training falls a little behind validation."""
    random = np.random.default_rng(0).normal(size=2000) * noise

    def loss(rate, step):
        speed = math.exp(-(math.log10(rate / best) ** 2))
        return 0.2 + 2 * math.exp(-speed * (step + 1) / 60) + random[step]

    return loss


def series(action, rate, loss, validated=True):
    steps = range(action.taken, action.taken + action.steps)
    train = tuple(loss(rate, step) for step in steps)
    score = loss(rate, steps[-1]) * 0.98
    scored = validated and action.validate_every is not None
    return Series(train, ((action.steps, score),) if scored else ())


def walk(policy, loss, validated=True):
    """Carry a policy through; returns its actions and findings."""
    actions, findings = [], []
    while (action := policy.ask()) is not None:
        actions.append(action)
        if isinstance(action, Probe):
            rates = [candidate.peak for candidate in action.candidates]
            findings += policy.tell(Probed(tuple(series(action, rate, loss, validated) for rate in rates)))
        else:
            findings += policy.tell(Trained(Series((1.0,) * action.steps)))
    return actions, findings


def chosen(findings):
    (choice,) = [finding for finding in findings if isinstance(finding, Choice)]
    return choice


def rates_of(probe):
    return [candidate.peak for candidate in probe.candidates]


def test_the_search_as_designed():
    """Four rates and a fifth for T/40 steps with a look halfway, the best two on to T/20."""
    actions, findings = walk(AutoLRS(1600), learning(0.02))
    probes = [action for action in actions if isinstance(action, Probe)]
    assert [(len(probe.arms), probe.taken, probe.steps) for probe in probes] == [
        (4, 0, 20), (2, 20, 20), (1, 0, 20), (1, 20, 20), (2, 40, 40),
    ]  # fmt: skip
    assert rates_of(probes[0]) == pytest.approx(FOUR, rel=1e-3)
    assert [probe.validate_every for probe in probes] == [None, 20, None, 20, 40]
    trains = [action for action in actions if isinstance(action, Train)]
    winner = rates_of(probes[-1]).index(trains[0].schedule.peak)
    assert (trains[0].take_up, trains[0].first_step) == (probes[-1].arms[winner], 80)
    assert trains[0].schedule == InversePower(chosen(findings).rate, warmup=20, begin=160, exponent=0.25)
    assert sum(train.steps for train in trains) == 1600 - 80


@pytest.mark.parametrize("best", [3e-4, 2e-3, 0.01, 0.05])
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_chooses_about_the_best_rate(best, noise):
    _, findings = walk(AutoLRS(1600), learning(best, noise))
    assert abs(math.log10(chosen(findings).rate / best)) < 0.3


@pytest.mark.parametrize(
    ("finish", "steps", "share"),
    [
        ("ease", 200, 0.2),
        ("ease", 300, 0.2),
        ("ease", 599, 0.2),
        ("ease", 600, 0.2),
        ("ease", 800, 0.125),
        ("ease", 16000, 0.125),
        ("decay", 16000, 0.175),
    ],
)
def test_a_search_costs_at_most_its_share(finish, steps, share):
    policy = AutoLRS(steps, options=AutoLRSOptions(finish=finish))
    actions, _ = walk(policy, lambda rate, step: 1.0)
    lost = sum(len(each.arms) * each.steps for each in actions if isinstance(each, Probe)) - actions[-1].first_step
    lost += sum(each.steps for each in actions[:-1] if isinstance(each, Train))
    assert lost == policy.cost().probe_steps <= share * steps


def test_arms_are_never_compared_before_20_steps():
    assert [rung.until for rung in plan_search(800).rungs] == [20, 20, 40]
    assert [rung.until for rung in plan_search(1000).rungs] == [20, 25, 20, 25, 50]
    assert [rung.until for rung in plan_search(4000).rungs] == [50, 100, 50, 100, 200]
    assert [rung.until for rung in plan_search(4000, doublings=2).rungs] == [50, 100, 50, 100, 200, 400]


def test_the_smaller_of_two_rates_that_are_as_good():
    for band, prefer, expected in ((0.5, "smallest", min), (0.5, "largest", max)):
        policy = AutoLRS(800, options=AutoLRSOptions(band=band, prefer=prefer))
        actions, findings = walk(policy, learning(0.03))
        last = [action for action in actions if isinstance(action, Probe)][-1]
        assert chosen(findings).rate == expected(rates_of(last))


def test_without_validation_the_last_training_losses_decide():
    _, findings = walk(AutoLRS(1600), learning(0.02), validated=False)
    assert abs(math.log10(chosen(findings).rate / 0.02)) < 0.3


def test_a_hard_budget_ends_the_same_training_earlier():
    soft, hard = AutoLRS(1600), AutoLRS(1600, options=AutoLRSOptions(budget="hard"))
    soft_actions, soft_findings = walk(soft, learning(0.02, 0.02))
    hard_actions, hard_findings = walk(hard, learning(0.02, 0.02))
    probes = [action for action in soft_actions if isinstance(action, Probe)]
    assert [each for each in hard_actions if isinstance(each, Probe)] == probes
    assert chosen(hard_findings).rate == chosen(soft_findings).rate
    spent = sum(len(probe.arms) * probe.steps for probe in probes)
    end = hard_actions[-1].first_step + hard_actions[-1].steps
    assert end + spent - 80 == 1600
    assert end == chosen(hard_findings).steps


def test_a_decay_begins_where_the_search_ended():
    actions, findings = walk(AutoLRS(1600, options=AutoLRSOptions(finish="decay")), learning(0.02))
    level, schedule = chosen(findings).rate, actions[-1].schedule
    assert [schedule.rate(step) / level for step in (159, 160, 880, 1599)] == pytest.approx([1, 1, 0.5, 1 / 1440])


@pytest.mark.parametrize(
    ("validation", "exponent"),
    [(None, 0.25), (1.0, 0.25), (1.5, 0.25), (1 / 1.4, 0.4), (0.5, 0.5), (0.1, 0.5), (0.0, 0.25)],
)
def test_the_level_eases_off_the_faster_the_noisier_the_iterates(validation, exponent):
    """Training losses are 1 throughout; the first piece, before anything is known, falls gently from a tenth on."""
    policy = AutoLRS(1600, options=AutoLRSOptions(known_lr=0.03))
    rates = []
    while (action := policy.ask()) is not None:
        rates += [action.schedule.rate(step) for step in range(action.first_step, action.first_step + action.steps)]
        seen = () if validation is None else ((action.steps, validation),)
        policy.tell(Trained(Series((1.0,) * action.steps, seen)))
    assert rates[20:161] == [0.03] * 141
    assert rates[200] == pytest.approx(0.03 * 0.8**0.25)
    assert rates[1599] == pytest.approx(rates[200] * (200 / 1599) ** exponent)


def test_a_run_that_is_taken_up_eases_off_the_same():
    whole, broken = (AutoLRS(1600, options=AutoLRSOptions(known_lr=0.03)) for _ in range(2))
    for validation in (0.9, 0.7, 0.6):
        outcome = Trained(Series((1.0,) * whole.ask().steps, ((200, validation),)))
        whole.tell(outcome)
        broken.tell(outcome)
        state = json.loads(json.dumps(broken.state()))
        broken = AutoLRS(1600, options=AutoLRSOptions(known_lr=0.03))
        broken.load_state(state)
    assert broken.ask() == whole.ask()


def test_a_known_rate_needs_no_search():
    policy = AutoLRS(1600, options=AutoLRSOptions(known_lr=0.03))
    actions, _ = walk(policy, learning(0.03))
    assert all(isinstance(action, Train) for action in actions)
    assert policy.cost().probe_steps == 0
    assert actions[0].schedule == InversePower(0.03, warmup=20, begin=160, exponent=0.25)


def test_too_few_steps_for_a_search_train_at_a_usual_rate_if_asked_to():
    actions, _ = walk(AutoLRS(150, options=AutoLRSOptions(strict=False)), learning(0.02))
    assert actions[0].schedule.peak == pytest.approx(FOUR[0], rel=1e-3)


@pytest.mark.parametrize(
    ("base", "low", "high"),
    [
        ("schedulefree.AdamWScheduleFree", 1e-4, 0.1),
        ("trainers.muon.ScheduleFreeMuon", 1e-3, 0.03),
        ("torch.optim.SGD", 1e-3, 1.0),
        ("mine.Lion", 1e-4, 1.0),
    ],
)
def test_the_interval_is_what_is_usual_for_the_optimizer(base, low, high):
    rates = sorted(rates_of(AutoLRS(1600, options=AutoLRSOptions(base=base)).ask()))
    parts = 3 if high / low < 32 else 4
    assert rates == pytest.approx([low * (high / low) ** ((each + 0.5) / parts) for each in range(parts)])


def test_near_a_rate_that_did_well_before_the_search_is_finer():
    rates = sorted(rates_of(AutoLRS(1600, options=AutoLRSOptions(near=0.01)).ask()))
    assert rates == pytest.approx([0.01 / math.sqrt(10), 0.01, 0.01 * math.sqrt(10)])


@pytest.mark.parametrize(("steps", "lost"), [(200, 40), (400, 40), (800, 60), (4000, 300)])
def test_near_a_rate_that_did_well_before_less_is_spent(steps, lost):
    policy = AutoLRS(steps, options=AutoLRSOptions(near=0.01))
    assert policy.cost().probe_steps == lost
    actions, findings = walk(policy, learning(0.03))
    assert chosen(findings).rate == pytest.approx(0.01 * math.sqrt(10))
    assert len({rate for each in actions if isinstance(each, Probe) for rate in rates_of(each)}) == 3


def test_where_every_rate_diverges_lower_ones_are_searched():
    def loss(rate, step):
        return 1.0 + math.log10(rate) ** 2 if rate < 2e-5 else (math.nan if step else 2.0)

    _, findings = walk(AutoLRS(800), loss)
    (moved,) = [finding for finding in findings if isinstance(finding, RangeFound)]
    assert (moved.low, moved.high) == pytest.approx((1e-7, 1e-4))
    assert chosen(findings).rate < 2e-5
    assert "diverged" in chosen(findings).reason


def test_a_loss_that_is_never_finite_is_not_the_rates_fault():
    with pytest.raises(UserError, match="not finite at the very first step"):
        walk(AutoLRS(800), lambda rate, step: math.nan)


def test_a_loss_that_runs_away_at_every_rate_is_said():
    with pytest.raises(UserError, match="makes the loss run away"):
        walk(AutoLRS(800), lambda rate, step: 1.0 if step < 3 else 1e9)


def test_a_loss_that_does_not_react_is_said_and_the_smaller_rate_taken():
    actions, findings = walk(AutoLRS(800), lambda rate, step: 1.0)
    assert "hardly reacts" in chosen(findings).reason
    assert chosen(findings).rate == min(rates_of([each for each in actions if isinstance(each, Probe)][-1]))


def test_it_says_what_it_tried_and_how_far():
    _, findings = walk(AutoLRS(1600), learning(0.02))
    forecasts = [finding for finding in findings if isinstance(finding, Forecast)]
    assert sorted(forecast.steps for forecast in forecasts) == [20, 20, 40, 80, 80]
    assert "2 of 5 fell behind" in chosen(findings).reason
    assert "below the next best" in chosen(findings).reason
    rates, losses, spread = zip(*chosen(findings).surrogate, strict=True)
    assert (rates[0], rates[-1]) == pytest.approx((1e-4, 0.1))
    assert all(loss > 0 for loss in losses)
    assert min(spread) >= 0


def test_the_process_is_the_textbooks():
    x, y = np.array([0.1, 0.35, 0.6, 0.9]), np.array([1.0, 0.2, 0.3, 2.0])
    at = np.linspace(0, 1, 31)
    theirs = GaussianProcessRegressor(Matern(1 / 6, "fixed", nu=2.5), alpha=1e-3, optimizer=None, normalize_y=True)
    mean, sd = theirs.fit(x[:, None], y).predict(at[:, None], return_std=True)
    ours = GaussianProcess(length=1 / 6).posterior(x, y, at, 0)
    np.testing.assert_allclose(ours[0], mean, atol=1e-9)
    np.testing.assert_allclose(ours[1], sd, atol=1e-9)


def test_a_proposal_stays_apart_from_what_was_tried():
    process = GaussianProcess(length=1 / 6, candidates=241, apart=0.04)
    x, y = np.array([0.125, 0.375, 0.625, 0.875]), np.array([1.0, 0.2, 0.2, 2.0])
    proposal = process.lowest_bound(x, y, 1.0, False, 0)
    mean, sd = process.posterior(x, y, grid := np.linspace(0, 1, 241), 0)
    apart = np.abs(grid[:, None] - x).min(axis=1) >= 0.04
    assert proposal == grid[apart][np.argmin((mean - sd)[apart])]
    assert 0.375 < proposal < 0.625


def test_warm_up_by_the_schedule_is_the_librarys_own():
    """Schedule-Free weighs its average by the largest rate so far, so that it matters who warms up."""

    def trained(warmup_steps, rates):
        torch.set_num_threads(1)
        torch.manual_seed(0)
        model = torch.nn.Linear(8, 4)
        optimizer = AdamWScheduleFree(
            model.parameters(), lr=0.02, betas=(0.8, 0.99), weight_decay=0.01, warmup_steps=warmup_steps
        )
        optimizer.train()
        inputs = torch.randn(300, 16, 8)
        for step, rate in enumerate(rates):
            optimizer.param_groups[0]["lr"] = rate
            optimizer.zero_grad()
            (model(inputs[step]).sin() - inputs[step, :, :4]).square().mean().backward()
            optimizer.step()
        optimizer.eval()
        return torch.nn.utils.parameters_to_vector(model.parameters()).detach()

    schedule = Linear(0.02, 300, warmup=20)
    ours = trained(0, [schedule.rate(step) for step in range(300)])
    theirs = trained(20, [0.02] * 300)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)
