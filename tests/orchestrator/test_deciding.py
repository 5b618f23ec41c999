"""What is decided on machines whose speeds are known: what pays is taken, what cannot pay is not even measured."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from orchestrator.config import CONF, Config, config_from
from orchestrator.decide.beforehand import measured
from orchestrator.decide.budget import Budget
from orchestrator.decide.communication import Sums
from orchestrator.decide.deciding import Deciding
from orchestrator.decide.progress import mean_noise, power_of, steps_needed, with_batch
from orchestrator.decide.recorded import changed, with_decisions
from orchestrator.errors import UserError
from orchestrator.events import Decided, Event, OverlapPlanned, PlanChosen
from orchestrator.plan_choice import PlanChoice


def configure(*overrides: str) -> Config:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        values: Any = OmegaConf.to_container(compose("config", list(overrides)), resolve=True, throw_on_missing=True)
    return config_from(dict(values))


@dataclass
class Machine:
    """Steps take `fixed` + `each` · batch seconds, and `exposed` of waiting; sums take `sums` by way and byte.

    hides: whether batches of more than four samples hide all waiting.
    """

    fixed: float = 0.01
    each: float = 0.001
    exposed: float = 0.0
    planned: float = 0.0  # seconds of waiting by plan
    hides: bool = False
    noise: tuple[float, float] = (10.0, 1000.0)
    samples: int = 10**6
    held: int = 10**8
    free: int = 10**11
    batch_size: int = 4
    by_plan: int | None = None
    done: list[str] = field(default_factory=list)
    steps: int = 0

    def gradient_bytes(self) -> int:
        return 2**20

    def trial_seconds(self, steps: int, together: bool = True) -> list[float]:
        self.done.append("steps" if together else "alone")
        waiting = self.exposed if self.by_plan is None else self.planned
        together = together and not (self.hides and self.batch_size > 4)
        return [self.fixed + self.each * self.batch_size + (waiting if together else 0.0)] * steps

    def trial_sums(self, sizes: Sequence[int], rounds: int) -> dict[str, list[list[float]]]:
        self.done.append("sums")
        ways = {"planned": self.planned, "backend": self.exposed}
        return {way: [[1e-3 + seconds * size / 2**20] * rounds for size in sizes] for way, seconds in ways.items()}

    def noise_scale(self, batches: int) -> float:
        self.done.append("noise")
        return self.noise[self.steps > 0]

    def training_samples(self) -> int:
        return self.samples

    def memory(self) -> tuple[int, int]:
        return self.held, self.free

    def use_batch(self, batch_size: int) -> None:
        self.batch_size = batch_size

    def go_by_plan_from(self, size_bytes: int | None) -> None:
        self.by_plan = size_bytes

    def train(self, rates: Sequence[float]) -> list[float]:
        self.steps += len(rates)
        return [1.0] * len(rates)

    def keep(self, name: str) -> None:
        self.kept = self.steps

    def rewind(self, name: str) -> None:
        self.steps = self.kept

    def forget(self, name: str) -> None:
        del self.kept


PLANNED = PlanChoice(PlanChosen("solved"), plans=[{}])


def decided(
    machine: Machine, *overrides: str, choice: PlanChoice = PLANNED, ddp: float = 1.0, first: bool = True
) -> tuple[dict[str, Decided], Config, list[Event]]:
    """Decide on a machine; `ddp`: how much slower it is than the pipeline that a search finds."""
    events: list[Event] = []
    config = configure("decide=all", "batch_size=4", "steps=4000", *overrides)
    deciding = Deciding(config, events, first)
    deciding.choice = choice

    def search(config: Config) -> OverlapPlanned:
        seconds = machine.trial_seconds(1)[0]
        ways = {"serial": [ddp * seconds], "ddp": [ddp * seconds], "8 buckets": [seconds]}
        return OverlapPlanned({}, "known", ways, "8 buckets", None, 1.0, {})

    replica = replace(machine, done=[])
    found = deciding.settled(machine, [replica], search, events.append)
    assert (replica.batch_size, replica.by_plan, replica.done) == (machine.batch_size, machine.by_plan, [])
    return {event.what: event for event in events if isinstance(event, Decided)}, found, events


def test_a_plan_that_is_faster_is_taken_from_the_size_on_from_which_it_is() -> None:
    events, config, _ = decided(machine := Machine(exposed=0.02, planned=0.005), "decide.batch=given")
    assert events["communication"].chosen == {"communication.method": "planned", "communication.threshold_bytes": 2**16}
    assert events["communication"].gain == pytest.approx(0.034 / 0.019)
    assert config.communication.method == "planned"
    assert machine.by_plan == 2**16


def test_a_plan_that_is_slower_is_not_taken() -> None:
    events, config, said = decided(machine := Machine(exposed=0.02, planned=0.03), "decide.batch=given")
    assert (events["communication"].chosen, events["communication"].gain) == ({}, 1.0)
    assert "1 MiB of gradients take" in events["communication"].reason
    assert machine.by_plan is None
    assert config.communication.method == "backend"
    assert PlanChosen("none") in said


def test_without_a_network_to_plan_for_the_reason_is_told() -> None:
    events, _, _ = decided(Machine(exposed=0.02), choice=PlanChoice(remarks=("all stand on one machine",)))
    assert events["communication"].reason == "all stand on one machine"


def test_what_nobody_waits_for_is_not_measured() -> None:
    events, _, _ = decided(machine := Machine(exposed=1e-5, planned=1e-6), "decide.batch=given")
    assert "sums" not in machine.done
    assert "too little to measure" in events["communication"].reason
    assert "not worth a search" in events["overlap"].reason


def test_a_larger_batch_is_taken_where_steps_hardly_take_longer() -> None:
    events, config, _ = decided(machine := Machine(fixed=0.05, each=1e-4))
    event = events["batch"]
    assert machine.batch_size == config.batch_size == event.chosen["batch_size"] > 4
    samples = 2 * config.batch_size
    assert config.steps == steps_needed(4000, 8, samples, noise=mean_noise(10, 1000))
    assert event.evidence["noise_scale"] == mean_noise(10, 1000)
    assert (event.evidence["noise_scale_at_first"], event.evidence["noise_scale_early"]) == (10, 1000)
    assert event.evidence["train_steps"] == config.steps
    assert event.gain > 1.1
    assert machine.steps == 0  # what was trained was undone


def test_of_batches_that_are_nearly_as_good_the_smallest_is_taken() -> None:
    """8 times the batch takes 1.22 and 1.07 times as many samples a second as 2 and 4 times do."""
    events, _, _ = decided(machine := Machine(fixed=0.05, each=0.02, noise=(1e9, 1e9)))
    assert set(events["batch"].evidence) >= {f"step_seconds_{size}" for size in (4, 8, 16, 32)}
    assert machine.batch_size == 16


@pytest.mark.parametrize(
    ("machine", "words"),
    [
        (Machine(fixed=0.0, each=0.01), "times as many samples a second"),
        (Machine(fixed=0.05, each=1e-4, noise=(0.1, 0.1)), "larger steps bring less than they take longer"),
        (Machine(fixed=0.05, each=1e-4, samples=50), "too few data"),
        (Machine(fixed=0.05, each=1e-4, free=10**8), "too little memory"),
    ],
    ids=["computation", "no noise", "few data", "little memory"],
)
def test_a_larger_batch_is_not_taken_where_it_does_not_pay_or_fit(machine: Machine, words: str) -> None:
    events, config, _ = decided(machine)
    assert words in events["batch"].reason
    assert (config.batch_size, machine.batch_size, config.steps) == (4, 4, 4000)


def test_batches_are_not_tried_where_that_takes_too_much_of_the_run() -> None:
    events, _, _ = decided(machine := Machine(fixed=0.05), "decide.seconds=0.01", "decide.communication=given")
    assert "too much of so short a run" in events["batch"].reason
    assert machine.batch_size == 4


def test_no_batch_is_tried_where_there_is_no_time_to_look_at_the_noise() -> None:
    events, _, _ = decided(machine := Machine(fixed=0.05, each=1e-4), "steps=300", "decide.communication=given")
    assert machine.done == ["steps", "alone"]
    assert "too much of so short a run" in events["batch"].reason


def test_one_worker_and_gpus_have_nothing_to_plan_for() -> None:
    for override in ("cluster.workers=1", "cluster.gpus_per_worker=1"):
        deciding = Deciding(configure("decide=all", "steps=4000", override), [], first=True)
        assert deciding.beginning.communication.method == "backend"
        events, _, _ = decided(Machine(), override, choice=PlanChoice())
        assert "no two workers on CPUs" in events["communication"].reason
    assert Deciding(configure("decide=all", "steps=4000"), [], first=True).beginning.communication.method == "planned"


def test_a_batch_that_lr_also_searches_is_left_to_it() -> None:
    events, _, _ = decided(Machine(fixed=0.05, each=1e-4), "lr.also=[batch_size]")
    assert events["batch"].reason == "lr.also searches it while training"


def test_a_search_for_a_pipeline_is_made_where_it_can_pay() -> None:
    machine = Machine(fixed=0.2, exposed=0.2, planned=0.2)
    events, config, _ = decided(machine, "decide.batch=given", "clip=null", "steps=20000", ddp=1.5)
    assert config.overlap.mode == "searched"
    assert events["overlap"].gain == pytest.approx(1.5)
    assert events["overlap"].evidence["ddp_step_seconds"] == pytest.approx(
        1.5 * events["overlap"].evidence["8 buckets_step_seconds"]
    )


@pytest.mark.parametrize(("hides", "mode"), [(False, "searched"), (True, "off")])
def test_whether_a_pipeline_can_pay_is_asked_of_the_batch_that_is_taken(hides: bool, mode: str) -> None:
    machine = Machine(fixed=0.2, exposed=0.2, planned=0.2, hides=hides)
    _, config, _ = decided(machine, "clip=null", "steps=20000", ddp=1.5)
    assert config.batch_size > 4
    assert config.overlap.mode == mode


def test_a_short_run_measures_nothing_unless_it_is_told_how_long_it_may() -> None:
    events, config, _ = decided(machine := Machine(fixed=0.05), "steps=150", "lr=constant")
    assert machine.done == []
    assert {event.reason for event in events.values()} == {
        "the run is over before measuring pays",
        "lr=constant gives it",
    }
    assert config == configure("decide=all", "batch_size=4", "steps=150", "lr=constant")
    decided(machine, "steps=150", "lr=constant", "decide.seconds=60")
    assert machine.done


def test_later_workers_decide_nothing_and_follow() -> None:
    events, config, said = decided(Machine(fixed=0.05, each=1e-4))
    again = Deciding(configure("decide=all", "batch_size=4", "steps=4000"), said, first=False)
    assert again.beginning == config
    assert again.settled(machine := Machine(), [], lambda config: None, said.append) == config
    assert machine.done == []
    assert len([event for event in said if isinstance(event, Decided)]) == len(events) == 4


def test_what_was_open_when_workers_failed_stays_as_given() -> None:
    events, config, _ = decided(machine := Machine(fixed=0.05, each=1e-4, exposed=0.1), first=False)
    assert machine.done == []
    assert "interrupted" in events["batch"].reason
    assert config == configure("decide=all", "batch_size=4", "steps=4000")


def test_one_decision_can_be_left_out() -> None:
    events, _, _ = decided(Machine(fixed=0.05), "decide.batch=given", "decide.rate=given")
    assert list(events) == ["communication", "overlap"]
    none = [f"decide.{what}=given" for what in ("communication", "overlap", "batch", "rate")]
    assert decided(Machine(), *none)[0] == {}


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_noise_is_expected_to_grow_on_as_it_did(first: float, early: float) -> None:
    """In proportion to the steps: half way it is 12.5 times what it is after a 25th, if it began at nothing."""
    expected = mean_noise(first, early)
    assert expected == early if early <= first else expected > early
    assert mean_noise(0.0, early) == pytest.approx(12.5 * early)


@given(st.integers(1, 10**5), st.integers(1, 512), st.integers(1, 512), st.floats(0, 1e6))
def test_equal_progress(steps: int, samples: int, other: int, noise: float) -> None:
    """Larger batches never need more steps, nor fewer than as many samples; smaller ones at least as many samples."""
    needed = steps_needed(steps, samples, other, noise)
    if other >= samples:
        assert steps * samples / other <= needed <= steps
        if noise:
            progress = [count / (1 + noise / size) for count, size in ((steps, samples), (needed, other))]
            assert progress[0] * (1 - 1e-9) <= progress[1] <= progress[0] + 1
    else:
        assert needed * other >= steps * samples


def test_rates_follow_the_batch_by_the_kind_of_optimizer() -> None:
    assert power_of("torch.optim.SGD") == 1
    assert power_of("torch.optim.AdamW") == power_of("schedulefree.AdamWScheduleFree") == 0.5
    assert power_of("prodigyopt.Prodigy") == 0
    adam = with_batch(configure("lr=cosine", "lr.rate=0.01", "batch_size=4"), 16, noise=1e9)
    assert adam["lr.rate"] == pytest.approx(0.02)
    sgd = with_batch(configure("lr=cosine", "optimizer=sgd", "lr.rate=0.01", "batch_size=4"), 16, noise=1e9)
    assert sgd["lr.rate"] == pytest.approx(0.04)
    assert "lr.rate" not in with_batch(configure("batch_size=4"), 16, noise=1e9)
    finetuning = with_batch(configure("lr=cosine", "lr.validate_every=80", "batch_size=4", "steps=400"), 8, noise=1e9)
    assert (finetuning["steps"], finetuning["lr.validate_every"]) == (201, 40)


def test_the_threshold_is_the_least_size_from_which_plans_stay_ahead() -> None:
    assert Sums((1, 2, 3), (9, 2, 3), (5, 4, 6)).threshold() == 2
    assert Sums((1, 2, 3), (1, 5, 3), (5, 4, 6)).threshold() == 3
    assert Sums((1, 2, 3), (1, 2, 6), (5, 4, 6)).threshold() is None


def test_savings_are_spent_again_in_part() -> None:
    budget = Budget(monotonic(), run=1e6)  # so long a run that this test takes no part of it
    assert budget.allows(2.9e4, saving=6e4)
    assert not budget.allows(3e4, saving=6e4)
    assert not budget.allows(2.9e4, saving=5e4)
    assert budget.allows(9e4, saving=9e5)
    assert replace(budget, saved=2e5).allows(1.2e5, saving=5e5)
    assert not replace(budget, limit=1.0, saved=20.0).allows(2.0, saving=50.0)


@pytest.mark.parametrize(
    "chosen",
    [
        {"task": {"_target_": "os.system"}},
        {"search_paths": ["/tmp"]},
        {"batch_size": 0},
        {"steps": True},
        {"communication.method": "pigeons"},
        {"lr.rate": float("nan")},
        {"overlap.mode": None},
    ],
)
def test_a_journal_cannot_set_what_no_decision_sets(chosen: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="which no run does"):
        with_decisions(configure(), [Decided("batch", chosen, {}, 0.0, 1.0, "")])


def test_keys_of_groups_and_of_policies_are_set() -> None:
    config = changed(configure("lr=cosine"), {"lr.rate": 0.5, "communication.threshold_bytes": None, "steps": 7})
    assert (config.lr["rate"], config.steps) == (0.5, 7)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("decide.batch=maybe", "decide.batch is maybe, and must be given or measured"),
        ("decide.seconds=0", "decide.seconds is 0"),
    ],
)
def test_wrong_values_are_sentences(override: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        configure(override)


def test_a_dry_run_says_what_would_be_decided() -> None:
    assert measured(configure()) == ""
    assert measured(configure("decide=all", "steps=4000")) == (
        "communication, batch, overlap, rate, by trial steps before the first one; "
        "at most 3% of what its steps take, and 50% of what was saved already, or 20% of what can be saved"
    )
    assert "at most 1 min 00 s" in measured(configure("decide=all", "decide.seconds=60", "decide.rate=given"))
    assert "over before measuring pays" in measured(configure("decide=all", "lr=constant", "steps=100"))
