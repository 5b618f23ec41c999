"""A search on a real trainer: the winner's steps are the run's own, and a kill at any point changes nothing."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from schedulefree import AdamWScheduleFree

from orchestrator.events import ArmTakenUp, ForecastMade, ProbeRan, RateChosen, StepsTrained
from orchestrator.execution import Execution
from orchestrator.history import history
from orchestrator.learning_rate import make_policy
from orchestrator.learning_rate.dimensions import AS_CONFIGURED
from orchestrator.learning_rate.policy import Choice
from orchestrator.summary import summarise
from trainers import Trainer, TrainerOptions
from trainers.models.mlp import Mlp
from trainers.tasks.tabular import Tabular

STEPS = 600


class OneRank:
    """A job of one rank in this very process."""

    def __init__(self, optimizer):
        torch.set_num_threads(1)
        task = Tabular(partial(Mlp, width=16, layers=1, dropout=0.2), "wine")
        self.trainer = Trainer(task, optimizer, TrainerOptions(8, clip=1.0))
        self.kept, self.most = {}, 0

    def train(self, rates, settings=AS_CONFIGURED, *, more=False):
        return self.trainer.train(rates, settings, more=more)

    def validate(self, split):
        return self.trainer.validate(split)

    def evaluate(self):
        return {}, []

    def measurements(self):
        return {}

    def keep(self, name):
        self.kept[name] = self.trainer.snapshot()
        self.most = max(self.most, len(self.kept))

    def rewind(self, name):
        self.trainer.restore(self.kept[name])

    def forget(self, name):
        del self.kept[name]


OPTIMIZERS = {
    "Schedule-Free": partial(AdamWScheduleFree, betas=(0.8, 0.99), weight_decay=0.01),
    "AdamW": torch.optim.AdamW,
}


def policy():
    return make_policy({"name": "autolrs"}, STEPS)


def carried_through(job, policy, remembered=()):
    """All events, findings among them."""
    events = []
    execution = Execution(job, events.append)
    execution.remember(remembered)
    while (action := policy.ask()) is not None:
        findings = policy.tell(execution.carry_out(action))
        events += [RateChosen(each) if isinstance(each, Choice) else ForecastMade(each) for each in findings]
    return events


def of(kind, events):
    return [event for event in events if isinstance(event, kind)]


def real_steps(events):
    """Rates and losses of all real steps."""
    segments = [each for each in history(events).segments if each.kind == "train"]
    return [rate for each in segments for rate in each.rates], [loss for each in segments for loss in each.losses]


def untimed(ran):
    return replace(ran, train_seconds=0.0, validation_seconds=0.0, restore_seconds=0.0)


@pytest.fixture(scope="module", params=OPTIMIZERS)
def undisturbed(request):
    job = OneRank(OPTIMIZERS[request.param])
    events = carried_through(job, policy())
    return OPTIMIZERS[request.param], job, events


def test_the_winners_steps_are_the_runs_own(undisturbed):
    optimizer, job, events = undisturbed
    story = history(events)
    assert (story.train_steps, story.probe_steps) == (STEPS, 100)
    plain = OneRank(optimizer)
    rates, losses = real_steps(events)
    assert plain.train(rates) == losses
    assert plain.trainer.weights_sha256() == job.trainer.weights_sha256()


@pytest.mark.parametrize(
    "done", [pytest.param(done, marks=[pytest.mark.slow] * (done not in (3, 6))) for done in range(8)]
)
def test_a_search_that_was_killed_anywhere_ends_equally(undisturbed, done):
    """A later process has `done` probes from the journal, and runs the ends of arms again where it needs them."""
    optimizer, job, events = undisturbed
    probes = of(ProbeRan, events)
    later = OneRank(optimizer)
    again = carried_through(later, policy(), probes[:done])
    assert len(probes) == 7
    assert len(of(ProbeRan, again)) == len(probes) - done
    for kind in (RateChosen, ForecastMade):
        assert of(kind, again) == of(kind, events)
    assert later.trainer.weights_sha256() == job.trainer.weights_sha256()


def test_a_hard_budget_is_the_soft_one_stopped_when_all_its_steps_are_taken(undisturbed):
    optimizer, _, soft = undisturbed
    job = OneRank(optimizer)
    hard = carried_through(job, make_policy({"name": "autolrs", "budget": "hard"}, STEPS))
    assert [untimed(ran) for ran in of(ProbeRan, hard)] == [untimed(ran) for ran in of(ProbeRan, soft)]
    assert history(hard).train_steps + history(hard).probe_steps == STEPS
    (rates, losses), (soft_rates, soft_losses) = real_steps(hard), real_steps(soft)
    assert (rates, losses) == (soft_rates[: len(rates)], soft_losses[: len(rates)])
    stopped = OneRank(optimizer)
    assert stopped.train(soft_rates[: len(rates)]) == losses
    assert stopped.trainer.weights_sha256() == job.trainer.weights_sha256()


def test_memory_is_given_back(undisturbed):
    _, job, _ = undisturbed
    assert job.kept == {}
    assert job.most == 5  # the start and four arms


@pytest.mark.slow
def test_settings_that_were_chosen_hold_from_the_first_step_to_the_last():
    """A run that searches more than the rate is one of a trainer that had found it from the beginning."""
    optimizer = partial(AdamWScheduleFree, betas=(0.8, 0.99), weight_decay=10.0)  # far too much
    job = OneRank(optimizer)
    events = carried_through(job, make_policy({"name": "autolrs", "also": ["weight_decay", "batch_size"]}, 1600))
    (chosen,) = of(RateChosen, events)
    assert chosen.choice.settings["weight_decay"] == 0.1
    rates, losses = real_steps(events)
    plain = OneRank(optimizer)
    assert plain.train(rates, chosen.choice.settings) == losses
    assert plain.trainer.weights_sha256() == job.trainer.weights_sha256()
    later = OneRank(optimizer)
    again = make_policy({"name": "autolrs", "also": ["weight_decay", "batch_size"]}, 1600)
    carried_through(later, again, of(ProbeRan, events)[:8])
    assert later.trainer.weights_sha256() == job.trainer.weights_sha256()


def test_the_taken_up_arm_counts_as_training_once(undisturbed):
    _, _, events = undisturbed
    (taken,) = of(ArmTakenUp, events)
    assert (taken.first_step, len(taken.rates)) == (0, 40)
    assert of(StepsTrained, events)[0].first_step == 40
    own = [ran for ran in of(ProbeRan, events) if ran.arm == taken.arm]
    assert [loss for ran in own for loss in ran.train_losses] == taken.losses
    summary = summarise(events)
    assert summary["seconds"]["search"] >= 0
    assert summary["lr_by_step"][7] == (7, of(RateChosen, events)[0].choice.rate)
    resumed = summarise([*events, taken])  # said again by a process that took the run up
    assert resumed["seconds"]["training"] == summary["seconds"]["training"]
