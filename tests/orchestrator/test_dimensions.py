"""Settings searched beside the rate: which are tried, what that costs, and when one of them wins."""

import json
import math

import pytest

from orchestrator.errors import UserError
from orchestrator.learning_rate import AutoLRS, AutoLRSOptions, drive, make_policy
from orchestrator.learning_rate.dimensions import FACTORS, SHARE
from orchestrator.learning_rate.policy import Choice, Probe, Probed, Series, Train, Trained
from orchestrator.learning_rate.turns import steps_in_turn

STEPS = 1600


def learning(gain):
    """Losses of a task that learns `gain(settings)` times as fast, a sample, as with its own settings."""

    def loss(rate, settings, step):
        speed = math.exp(-(math.log10(rate / 0.01) ** 2)) * gain(settings)
        return 0.2 + 2 * math.exp(-speed * (step + 1) * settings.get("batch_size", 1) / 60)

    return loss


def walk(policy, loss):
    """Carry a policy through; returns its actions and its choice."""
    actions, findings = [], []
    while (action := policy.ask()) is not None:
        actions.append(action)
        findings += tell(policy, action, loss)
    (choice,) = [finding for finding in findings if isinstance(finding, Choice)]
    return actions, choice


def tell(policy, action, loss):
    """What comes of one action."""
    if isinstance(action, Train):
        return policy.tell(Trained(Series((1.0,) * action.steps)))
    steps = range(action.taken, action.taken + action.steps)
    seen = [tuple(loss(each.peak, settings, step) for step in steps) for _, each, settings in action.asked()]
    scored = action.validate_every is not None
    series = (Series(train, ((action.steps, train[-1]),) if scored else ()) for train in seen)
    return policy.tell(Probed(tuple(series)))


def searching(*also, steps=STEPS, **options):
    return AutoLRS(steps, options=AutoLRSOptions(also=also, **options))


def samples(action):
    """Steps with batches of the size configured that take as many samples."""
    if isinstance(action, Train):
        return action.steps * action.settings.get("batch_size", 1)
    return sum(action.steps * settings.get("batch_size", 1) for *_, settings in action.asked())


@pytest.mark.parametrize("name", FACTORS)
def test_each_factor_is_tried_on_the_best_rate(name):
    actions, _ = walk(searching(name), learning(lambda settings: 1.0))
    probes = [action for action in actions if isinstance(action, Probe)]
    tried = [(rate.peak, settings) for probe in probes for _, rate, settings in probe.asked() if settings]
    assert [settings for _, settings in tried] == [{name: factor} for factor in FACTORS[name]]
    assert len({rate for rate, _ in tried}) == 1


@pytest.mark.parametrize("factor", [0.1, 10.0])
def test_a_setting_that_is_better_wins(factor):
    policy = searching("weight_decay", "momentum")
    actions, choice = walk(policy, learning(lambda settings: 1 + settings.get("weight_decay", 1) / 20 * (factor > 1)
                                            + (settings.get("weight_decay") == factor)))  # fmt: skip
    assert choice.settings["weight_decay"] == factor
    assert "momentum" not in choice.settings  # makes no difference here
    assert all(action.settings == choice.settings for action in actions if isinstance(action, Train))


def test_two_settings_may_win_together():
    def gain(settings):
        return (1 + (settings.get("weight_decay") == 0.1)) * (1 + (settings.get("momentum") == 2.0))

    _, choice = walk(searching("weight_decay", "momentum"), learning(gain))
    assert choice.settings == {"weight_decay": 0.1, "momentum": 2.0}


def test_a_setting_that_is_hardly_better_does_not():
    _, choice = walk(searching("weight_decay"), learning(lambda settings: 1.0001 if settings else 1.0))
    assert choice.settings == {}


@pytest.mark.parametrize("steps", [1600, 1999])
@pytest.mark.parametrize("budget", ["soft", "hard"])
@pytest.mark.parametrize("better", [0.5, 2.0, 1.0])
def test_batches_of_another_size_are_compared_after_as_many_samples(steps, budget, better):
    policy = searching("batch_size", steps=steps, budget=budget)
    actions, choice = walk(policy, learning(lambda settings: 1 + (settings.get("batch_size") == better)))
    assert choice.settings.get("batch_size", 1.0) == better
    probed = sum(samples(action) for action in actions if isinstance(action, Probe))
    trained = sum(samples(action) for action in actions if isinstance(action, Train))
    (first,) = [action for action in actions if isinstance(action, Train) and action.take_up]
    taken_up = first.first_step * better
    assert taken_up + trained == pytest.approx(steps - (probed - taken_up) * (budget == "hard"), abs=2)
    assert first.schedule.rate(0) == pytest.approx(choice.rate / round(max(8, steps // 80) / better))  # warms up alike
    assert probed - taken_up <= policy.cost().probe_steps


@pytest.mark.parametrize("also", [["weight_decay"], ["momentum", "batch_size"], [*FACTORS]])
@pytest.mark.parametrize("steps", [1600, 1999])
def test_what_it_adds_is_known_beforehand_and_stays_within_the_share(also, steps):
    plain, searched = AutoLRS(steps).cost(), searching(*also, steps=steps).cost()
    assert searched.also_steps <= len(also) * SHARE * steps
    assert searched.probe_steps == plain.probe_steps + searched.also_steps
    actions, _ = walk(searching(*also, steps=steps), lambda rate, settings, step: 1.0)
    tried = [action for action in actions if isinstance(action, Probe)]
    on_top = sum(samples(probe) for probe in tried if any(settings for *_, settings in probe.asked()))
    assert on_top == pytest.approx(searched.also_steps, abs=1)
    assert steps_in_turn(searching(*also, steps=steps), copies=1) == pytest.approx(steps + searched.probe_steps, abs=1)


def test_nothing_else_is_searched_unless_asked_for():
    actions, choice = walk(AutoLRS(STEPS), learning(lambda settings: 1.0))
    assert choice.settings == {}
    assert not any(settings for action in actions if isinstance(action, Probe) for *_, settings in action.asked())


def test_a_search_goes_on_from_its_state():
    loss = learning(lambda settings: 1 + (settings.get("batch_size") == 0.5))
    policy = searching(*FACTORS)
    while (action := policy.ask()) is not None:
        later = searching(*FACTORS)
        later.load_state(json.loads(json.dumps(policy.state())))
        assert later.ask() == action
        findings = tell(policy, action, loss)
        assert tell(later, action, loss) == findings
        policy = later


@pytest.mark.parametrize(
    ("options", "steps", "sentence"),
    [
        ({"also": ["dropout"]}, 1600, r"lr\.also has dropout, which cannot be searched"),
        ({"also": ["momentum", "momentum"]}, 1600, r"lr\.also has momentum twice"),
        ({"also": ["weight_decay"]}, 799, r"steps is 799, too few to search weight_decay: set steps to 800"),
        ({"also": ["batch_size"]}, 1599, r"set steps to 1600"),
        ({"also": ["momentum"], "known_lr": 0.1}, 1600, r"with lr\.known_lr nothing is searched"),
        ({"also": "momentum"}, 1600, r"lr\.also is 'momentum': set it to a list"),
    ],
)
def test_wrong_input_is_a_sentence(options, steps, sentence):
    with pytest.raises(UserError, match=sentence):
        make_policy({"name": "autolrs", **options}, steps)


def test_with_too_few_steps_the_rate_alone_is_searched_if_asked_to():
    policy = searching("momentum", "batch_size", steps=1000, strict=False)
    _, choice = walk(policy, learning(lambda settings: 1 + 2 * ("momentum" in settings)))
    assert set(choice.settings) == {"momentum"}


class Slope:
    """A loop of its own: one number goes down, faster with less weight decay."""

    def __init__(self):
        self.param_groups, self.place, self.decay, self.used = [{"lr": 0.0}], 3.0, 1.0, []

    def state_dict(self):
        return {"place": self.place}

    def load_state_dict(self, state):
        self.place = state["place"]

    def step(self):
        self.place *= 1 - self.param_groups[0]["lr"] * (2.0 - min(self.decay, 2.0))
        return self.place

    def use(self, settings):
        self.decay = settings.get("weight_decay", 1.0)
        self.used.append(dict(settings))


def test_a_plain_loop_is_told_what_to_use():
    loop = Slope()
    history = drive(searching("weight_decay"), loop.step, loop, use=loop.use)
    assert [each for each in loop.used if each][:2] == [{"weight_decay": 0.1}, {"weight_decay": 10.0}]
    assert loop.used[-1] == {"weight_decay": 0.1}
    again, rates = Slope(), iter(history.rates)
    again.use({"weight_decay": 0.1})
    for rate in rates:
        again.param_groups[0]["lr"] = rate
        again.step()
    assert again.place == loop.place


def test_a_plain_loop_that_cannot_is_told_so():
    loop = Slope()
    with pytest.raises(UserError, match="the policy searches weight_decay: give drive a function"):
        drive(searching("weight_decay"), loop.step, loop)
