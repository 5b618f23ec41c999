"""The contract that every policy keeps, whatever the losses are; and how each of the simple ones decides."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import UserError
from orchestrator.learning_rate import make_policy
from orchestrator.learning_rate.factory import POLICIES
from orchestrator.learning_rate.policy import Choice, Probe, Probed, Series, Train, Trained

FEW = {"probes": 3}  # a search of ten takes a third of a second a stage
VARIANTS = {name: {"name": name} for name in POLICIES if not name.startswith("autolrs")} | {
    "autolrs": {"name": "autolrs", **FEW},
    "autolrs_paper": {"name": "autolrs_paper", "probes": 1},
    "autolrs one by one": {"name": "autolrs", "kappa": 1.96, "stages": 1, **FEW},
    "autolrs given an interval": {"name": "autolrs", "min_lr": 1e-4, "max_lr": 1.0, "stages": 3, "probes": 2},
    "autolrs doubling": {"name": "autolrs", "stage_steps": 60, "max_stage_steps": 240, "max_lr": 1.0, "probes": 2},
    "autolrs with warm-up": {"name": "autolrs", "warmup": 0.1, "validation_points": 0, "probes": 1},
    "cosine in three stages": {"name": "cosine", "stages": 3, "min_lr": 1e-5},
}


def falling(step, rate):
    return 2.0 * math.exp(-step / 50) + abs(math.log10(rate) + 2) / 4


LOSSES = {
    "falling": falling,
    "rising": lambda step, rate: 1.0 + 0.01 * step,
    "constant": lambda step, rate: 1.0,
    "not a number": lambda step, rate: math.nan,
    "infinite later": lambda step, rate: math.inf if step > 5 else 1.0,
    "broken at high rates": lambda step, rate: math.nan if rate > 0.01 else falling(step, rate),
    "negative": lambda step, rate: -1.0 - 0.01 * step,
}


def series(loss, schedule, first_step, steps, validate_every):
    train = tuple(loss(step, schedule.rate(step)) for step in range(first_step, first_step + steps))
    places = range(validate_every, steps + 1, validate_every) if validate_every else ()
    return Series(train, tuple((place, train[place - 1]) for place in places))


def until_broken(seen):
    """A probe ends early at a loss that is not finite."""
    broken = next((i for i, loss in enumerate(seen.train) if not math.isfinite(loss)), len(seen.train))
    return Series(seen.train[: broken + 1], tuple(pair for pair in seen.validation if pair[0] <= broken))


def carry_out(action, loss):
    if isinstance(action, Train):
        return Trained(series(loss, action.schedule, action.first_step, action.steps, action.validate_every))
    tried = [series(loss, candidate, 0, action.steps, action.validate_every) for candidate in action.candidates]
    return Probed(tuple(until_broken(seen) for seen in tried))


def walk(policy, loss, steps=400, renew=None):
    """Carry a policy through; `renew` puts another in its place between any two actions."""
    actions, findings = [], []
    while (action := policy.ask()) is not None:
        assert policy.ask() == action
        actions.append(action)
        findings += policy.tell(carry_out(action, loss))
        policy = renew(policy) if renew else policy
        assert len(actions) < 1000
    return actions, findings


def check_totals(policy, actions, steps):
    trains = [action for action in actions if isinstance(action, Train)]
    probes = [action for action in actions if isinstance(action, Probe)]
    position = 0
    for train in trains:
        assert train.first_step == position
        position += train.steps
    assert position == steps == policy.cost().train_steps
    assert sum(len(probe.candidates) * probe.steps for probe in probes) == policy.cost().probe_steps
    assert len({train.stage for train in trains if train.stage > 0}) == policy.cost().stages


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_any_losses_are_survived_with_exact_totals_and_sane_rates(variant, loss):
    policy = make_policy(VARIANTS[variant], steps=400)
    actions, findings = walk(policy, LOSSES[loss])
    check_totals(policy, actions, 400)
    for action in actions:
        if isinstance(action, Train):
            rates = [action.schedule.rate(step) for step in range(action.first_step, action.first_step + action.steps)]
            assert all(0 < rate < math.inf for rate in rates)
    json.dumps([vars(finding) for finding in findings], allow_nan=False)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("loss", ["falling", pytest.param("broken at high rates", marks=pytest.mark.slow)])
def test_state_goes_through_json_at_every_point(variant, loss):
    def renew(policy):
        later = make_policy(VARIANTS[variant], steps=400, seed=3)
        later.load_state(json.loads(json.dumps(policy.state(), allow_nan=False)))
        return later

    undisturbed = walk(make_policy(VARIANTS[variant], steps=400, seed=3), LOSSES[loss])
    assert walk(make_policy(VARIANTS[variant], steps=400, seed=3), LOSSES[loss], renew=renew) == undisturbed


@settings(max_examples=30, deadline=None)
@given(
    steps=st.integers(1, 120), variant=st.sampled_from([name for name in VARIANTS if "stages" not in VARIANTS[name]])
)
def test_any_budget_is_spent_exactly(steps, variant):
    policy = make_policy(VARIANTS[variant], steps=steps)
    actions, _ = walk(policy, falling)
    check_totals(policy, actions, steps)


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_outcome_of_the_wrong_kind_is_refused(variant):
    policy = make_policy(VARIANTS[variant], steps=400)
    wrong = Trained(Series(())) if isinstance(policy.ask(), Probe) else Probed(())
    with pytest.raises(ValueError, match="was told"):
        policy.tell(wrong)


def test_plateau_lowers_the_rate_when_validation_stops_falling():
    policy = make_policy({"name": "plateau", "rate": 0.1, "patience": 3, "stages": 10}, steps=100)
    actions, findings = walk(policy, lambda step, rate: max(1 - step / 50, 0.2))
    rates = [action.schedule.rate(0) for action in actions]
    assert rates[:4] == [0.1] * 4
    assert rates[-1] < 0.1
    assert rates == sorted(rates, reverse=True)
    assert [finding.rate for finding in findings if isinstance(finding, Choice)] == sorted(set(rates), reverse=True)[1:]


def test_plateau_waits_anew_after_each_gain():
    """A loss that falls at every third validation never lacks a gain for more than two."""
    policy = make_policy({"name": "plateau", "rate": 0.1, "patience": 3, "stages": 10, "validate_every": 1}, steps=100)
    actions, _ = walk(policy, lambda step, rate: 2.0 - 0.01 * (step // 3))
    assert {action.schedule.rate(0) for action in actions} == {0.1}


def test_plateau_stops_at_its_lowest_rate():
    policy = make_policy({"name": "plateau", "rate": 0.1, "min_lr": 0.04, "patience": 1}, steps=100)
    actions, _ = walk(policy, lambda step, rate: 1.0)
    assert actions[-1].schedule.rate(0) == 0.04


@pytest.mark.parametrize(
    ("options", "steps", "words"),
    [
        ({"name": "sgdr"}, 10, ["lr.name", "sgdr", "cosine"]),
        ({}, 10, ["lr.name"]),
        ({"name": "cosine", "max_rate": 1}, 10, ["lr.max_rate", "warmup"]),
        ({"name": "cosine", "rate": "high"}, 10, ["lr.rate", "a number"]),
        ({"name": "cosine", "stages": 2.5}, 10, ["lr.stages", "whole number"]),
        ({"name": "cosine", "stages": True}, 10, ["lr.stages", "whole number"]),
        ({"name": "constant", "rate": 0}, 10, ["lr.rate", "positive"]),
        ({"name": "constant", "rate": -1}, 10, ["lr.rate", "positive"]),
        ({"name": "constant", "rate": math.nan}, 10, ["lr.rate", "positive"]),
        ({"name": "constant"}, 0, ["steps is 0"]),
        ({"name": "plateau"}, -5, ["steps is -5"]),
        ({"name": "autolrs"}, 0, ["steps is 0"]),
        ({"name": "constant"}, 1.5, ["steps", "whole number"]),
        ({"name": "constant", "stages": 11}, 10, ["lr.stages is 11", "steps is only 10"]),
        ({"name": "autolrs", "stages": 11}, 10, ["lr.stages is 11", "steps is only 10"]),
        ({"name": "autolrs", "min_lr": 0.1, "max_lr": 0.1}, 10, ["lr.min_lr", "lr.max_lr"]),
        ({"name": "autolrs", "min_lr": 1.0, "max_lr": 0.1}, 10, ["lr.min_lr", "lr.max_lr"]),
        ({"name": "autolrs", "min_lr": 0.0, "max_lr": 0.1}, 10, ["lr.min_lr", "positive"]),
        ({"name": "autolrs", "min_lr": 0.1}, 10, ["lr.min_lr", "lr.max_lr"]),
        ({"name": "autolrs", "probes": 0}, 10, ["lr.probes", "positive"]),
        ({"name": "autolrs", "probe_share": 1.5}, 10, ["lr.probe_share"]),
        ({"name": "autolrs", "stages": 2, "stage_steps": 5}, 10, ["lr.stages", "lr.stage_steps"]),
        ({"name": "autolrs", "max_stage_steps": 5}, 10, ["lr.max_stage_steps", "lr.stage_steps"]),
        ({"name": "autolrs", "stage_steps": 5, "max_stage_steps": 4}, 10, ["lr.max_stage_steps"]),
        ({"name": "cosine", "rate": 0.1, "min_lr": 0.1}, 10, ["lr.min_lr", "lr.rate"]),
        ({"name": "cosine", "warmup": 1.0}, 10, ["lr.warmup"]),
        ({"name": "linear", "warmup": 0.5, "decay": 0.6}, 10, ["lr.decay"]),
        ({"name": "step", "factor": 2.0}, 10, ["lr.factor"]),
        ({"name": "plateau", "factor": 1.0}, 10, ["lr.factor"]),
        ({"name": "one_cycle", "rise": 1.0}, 10, ["lr.rise"]),
    ],
)
def test_wrong_parameters_are_one_sentence_that_names_the_key(options, steps, words):
    with pytest.raises(UserError) as caught:
        make_policy(options, steps)
    assert all(word in str(caught.value) for word in words)
    assert "\n" not in str(caught.value)
