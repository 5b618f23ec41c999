"""The contract that every policy keeps, whatever the losses are; and how each of the simple ones decides."""

import json
import math
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import UserError
from orchestrator.learning_rate import make_policy
from orchestrator.learning_rate.factory import POLICIES
from orchestrator.learning_rate.policy import Choice, Probe, Probed, Series, Train, Trained

FEW = {"probes": 3}  # a search of ten takes a third of a second a stage
VARIANTS = {name: {"name": name} for name in POLICIES if not name.startswith("autolrs")} | {
    "autolrs": {"name": "autolrs", "strict": False},
    "autolrs within the budget": {"name": "autolrs", "strict": False, "budget": "hard"},
    "autolrs of a known rate": {"name": "autolrs", "known_lr": 0.01},
    "autolrs_hold": {"name": "autolrs_hold", "strict": False, "finish": "decay", "prefer": "largest"},
    "autolrs_paper": {"name": "autolrs_paper", "probes": 1},
    "autolrs_paper one by one": {"name": "autolrs_paper", "kappa": 1.96, "stages": 1, **FEW},
    "autolrs_paper in an interval": {"name": "autolrs_paper", "min_lr": 1e-4, "max_lr": 1.0, "stages": 3, "probes": 2},
    "autolrs_paper doubling": {
        "name": "autolrs_paper",
        "stage_steps": 60,
        "max_stage_steps": 240,
        "max_lr": 1.0,
        "probes": 2,
    },
    "autolrs_paper warmed up": {"name": "autolrs_paper", "warmup": 0.1, "validation_points": 0, "probes": 1},
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

ARMS = ("autolrs", "autolrs within the budget", "autolrs_hold")
HOPELESS = {"not a number": "at the very first step", "infinite later": "makes the loss run away"}


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
    every = action.validate_every
    tried = [series(loss, candidate, action.taken, action.steps, every) for candidate in action.candidates]
    return Probed(tuple(until_broken(seen) for seen in tried))


class Walk(NamedTuple):
    """What was asked for and concluded on the way, and the steps of all probes."""

    actions: list
    findings: list
    probed: int


def walk(policy, loss, renew=None):
    """Carry a policy through; `renew` puts another in its place between any two actions."""
    actions, findings, arms, probed = [], [], {}, 0
    while (action := policy.ask()) is not None:
        assert policy.ask() == action
        actions.append(action)
        outcome = carry_out(action, loss)
        arms = follow(arms, action, outcome)
        probed += sum(len(seen.train) for seen in outcome.series) if isinstance(action, Probe) else 0
        findings += policy.tell(outcome)
        policy = renew(policy) if renew else policy
        assert len(actions) < 1000
    return Walk(actions, findings, probed)


def follow(arms, action, outcome):
    """The steps behind each end that is kept after an action; only kept ends may be gone on from or taken up."""
    if isinstance(action, Train):
        assert action.take_up is None or arms[action.take_up] == action.first_step
        return {}
    kept = {name: steps for name, steps in arms.items() if name in {*action.arms, *action.needed}}
    for name, seen in zip(action.arms, outcome.series, strict=bool(action.arms)):
        assert action.taken == 0 or arms[name] == action.taken
        kept[name] = action.taken + len(seen.train)
    return kept


def check_totals(policy, went, steps, budget=None):
    trains = [action for action in went.actions if isinstance(action, Train)]
    taken_up = trains[0].first_step
    assert (taken_up > 0) == (trains[0].take_up is not None)
    lost = went.probed - taken_up
    for earlier, later in pairwise(trains):
        assert (later.first_step, later.take_up) == (earlier.first_step + earlier.steps, None)
    end = trains[-1].first_step + trains[-1].steps
    assert end == (steps - lost if budget == "hard" else steps)
    assert lost <= policy.cost().probe_steps
    assert end >= policy.cost().train_steps
    assert len({train.stage for train in trains if train.stage > 0}) == policy.cost().stages


@pytest.mark.parametrize(("variant", "steps"), [(name, 400) for name in VARIANTS] + [(name, 1600) for name in ARMS])
@pytest.mark.parametrize("loss", LOSSES)
def test_any_losses_are_survived_with_exact_totals_and_sane_rates(variant, loss, steps):
    options = VARIANTS[variant]
    policy = make_policy(options, steps)
    if variant in ARMS and loss in HOPELESS:
        with pytest.raises(UserError, match=HOPELESS[loss]):
            walk(policy, LOSSES[loss])
        return
    went = walk(policy, LOSSES[loss])
    check_totals(policy, went, steps, options.get("budget"))
    for action in went.actions:
        if isinstance(action, Train):
            rates = [action.schedule.rate(step) for step in range(action.first_step, action.first_step + action.steps)]
            assert all(0 < rate < math.inf for rate in rates)
    json.dumps([vars(finding) for finding in went.findings], allow_nan=False)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("loss", ["falling", pytest.param("broken at high rates", marks=pytest.mark.slow)])
def test_state_goes_through_json_at_every_point(variant, loss):
    steps = 800 if variant in ARMS else 400

    def renew(policy):
        later = make_policy(VARIANTS[variant], steps, seed=3)
        later.load_state(json.loads(json.dumps(policy.state(), allow_nan=False)))
        return later

    undisturbed = walk(make_policy(VARIANTS[variant], steps, seed=3), LOSSES[loss])
    assert walk(make_policy(VARIANTS[variant], steps, seed=3), LOSSES[loss], renew=renew) == undisturbed


@settings(max_examples=30)
@given(
    steps=st.integers(1, 120), variant=st.sampled_from([name for name in VARIANTS if "stages" not in VARIANTS[name]])
)
def test_any_budget_is_spent_exactly(steps, variant):
    policy = make_policy(VARIANTS[variant], steps=steps)
    check_totals(policy, walk(policy, falling), steps, VARIANTS[variant].get("budget"))


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_outcome_of_the_wrong_kind_is_refused(variant):
    policy = make_policy(VARIANTS[variant], steps=400)
    wrong = Trained(Series(())) if isinstance(policy.ask(), Probe) else Probed(())
    with pytest.raises(ValueError, match="was told"):
        policy.tell(wrong)


def test_plateau_lowers_the_rate_when_validation_stops_falling():
    policy = make_policy({"name": "plateau", "rate": 0.1, "patience": 3, "stages": 10}, steps=100)
    actions, findings, _ = walk(policy, lambda step, rate: max(1 - step / 50, 0.2))
    rates = [action.schedule.rate(0) for action in actions]
    assert rates[:4] == [0.1] * 4
    assert rates[-1] < 0.1
    assert rates == sorted(rates, reverse=True)
    assert [finding.rate for finding in findings if isinstance(finding, Choice)] == sorted(set(rates), reverse=True)[1:]


def test_plateau_waits_anew_after_each_gain():
    """A loss that falls at every third validation never lacks a gain for more than two."""
    policy = make_policy({"name": "plateau", "rate": 0.1, "patience": 3, "stages": 10, "validate_every": 1}, steps=100)
    actions, _, _ = walk(policy, lambda step, rate: 2.0 - 0.01 * (step // 3))
    assert {action.schedule.rate(0) for action in actions} == {0.1}


def test_plateau_stops_at_its_lowest_rate():
    policy = make_policy({"name": "plateau", "rate": 0.1, "min_lr": 0.04, "patience": 1}, steps=100)
    actions, _, _ = walk(policy, lambda step, rate: 1.0)
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
        ({"name": "autolrs_paper", "stages": 11}, 10, ["lr.stages is 11", "steps is only 10"]),
        ({"name": "autolrs", "min_lr": 0.1, "max_lr": 0.1}, 10, ["lr.min_lr", "lr.max_lr"]),
        ({"name": "autolrs", "min_lr": 1.0, "max_lr": 0.1}, 10, ["lr.min_lr", "lr.max_lr"]),
        ({"name": "autolrs", "min_lr": 0.0, "max_lr": 0.1}, 10, ["lr.min_lr", "positive"]),
        ({"name": "autolrs_paper", "min_lr": 0.1}, 10, ["lr.min_lr", "lr.max_lr"]),
        ({"name": "autolrs_paper", "probes": 0}, 10, ["lr.probes", "positive"]),
        ({"name": "autolrs_paper", "probe_share": 1.5}, 10, ["lr.probe_share"]),
        ({"name": "autolrs_paper", "stages": 2, "stage_steps": 5}, 10, ["lr.stages", "lr.stage_steps"]),
        ({"name": "autolrs_paper", "max_stage_steps": 5}, 10, ["lr.max_stage_steps", "lr.stage_steps"]),
        ({"name": "autolrs_paper", "stage_steps": 5, "max_stage_steps": 4}, 10, ["lr.max_stage_steps"]),
        ({"name": "autolrs"}, 199, ["steps is 199", "200 or more", "lr.known_lr", "lr.strict=false"]),
        ({"name": "autolrs", "min_lr": 0.2}, 300, ["lr.min_lr", "lr.max_lr = 0.1"]),
        ({"name": "autolrs", "known_lr": -1.0}, 300, ["lr.known_lr", "positive"]),
        ({"name": "autolrs", "budget": "none"}, 300, ["lr.budget", "soft or hard"]),
        ({"name": "autolrs", "finish": "fall"}, 300, ["lr.finish", "ease or decay"]),
        ({"name": "autolrs", "prefer": "best"}, 300, ["lr.prefer", "smallest or largest"]),
        ({"name": "autolrs", "band": 1.0}, 300, ["lr.band"]),
        ({"name": "autolrs", "strict": 1}, 300, ["lr.strict", "true or false"]),
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
