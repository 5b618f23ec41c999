"""Every schedule at its corners, and its way through JSON."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.learning_rate.schedules import (
    Constant,
    Cosine,
    Exponential,
    InversePower,
    Linear,
    OneCycle,
    Step,
    schedule_from_json,
    schedule_json,
)

ALL = [
    Constant(0.1),
    Linear(0.1, 100, warmup=10, decay=20, floor=0.01),
    Cosine(0.1, 100, warmup=10, floor=0.01),
    OneCycle(0.1, 100, rise=30, start=0.004, floor=1e-5),
    Step(0.1, every=34, factor=0.1),
    Exponential(1e-6, 10, 100),
    InversePower(0.1, warmup=10, begin=20, exponent=0.25),
]


@pytest.mark.parametrize("schedule", ALL, ids=lambda schedule: type(schedule).__name__)
def test_survives_json(schedule):
    assert schedule_from_json(json.loads(json.dumps(schedule_json(schedule)))) == schedule


@pytest.mark.parametrize("schedule", ALL, ids=lambda schedule: type(schedule).__name__)
def test_rates_are_positive_and_the_last_one_stays(schedule):
    assert all(schedule.rate(step) > 0 for step in range(100))
    if not isinstance(schedule, Step | InversePower):
        assert schedule.rate(101) == pytest.approx(schedule.rate(10_000))


def test_only_schedules_come_out_of_json():
    with pytest.raises(KeyError):
        schedule_from_json({"schedule": "os.system"})


def test_linear_warms_up_holds_and_decays():
    rates = [Linear(1.0, 10, warmup=2, decay=4).rate(step) for step in range(12)]
    assert rates == pytest.approx([0.5, 1, 1, 1, 1, 1, 1, 0.75, 0.5, 0.25, 0, 0])


def test_linear_without_decay_stays_at_its_peak():
    assert [Linear(1.0, 4, warmup=2).rate(step) for step in range(6)] == [0.5, 1, 1, 1, 1, 1]


def test_an_inverse_power_holds_and_falls_as_the_root_of_the_steps():
    rates = [InversePower(1.0, warmup=2, begin=4, exponent=0.5).rate(step) for step in (0, 1, 3, 4, 16, 400)]
    assert rates == pytest.approx([0.5, 1, 1, 1, 0.5, 0.1])


def test_cosine_is_halfway_in_the_middle():
    schedule = Cosine(1.0, 110, warmup=10, floor=0.2)
    assert schedule.rate(0) == pytest.approx(0.1)
    assert schedule.rate(9) == schedule.rate(10) == pytest.approx(1.0)
    assert schedule.rate(60) == pytest.approx(0.6)
    assert schedule.rate(110) == pytest.approx(0.2)


def test_one_cycle_rises_and_falls():
    schedule = OneCycle(1.0, 100, rise=30, start=0.04, floor=1e-4)
    assert schedule.rate(0) == pytest.approx(0.04)
    assert schedule.rate(30) == pytest.approx(1.0)
    assert schedule.rate(100) == pytest.approx(1e-4)


def test_step_drops_after_equal_parts():
    assert [Step(1.0, 2, 0.1).rate(step) for step in range(5)] == pytest.approx([1, 1, 0.1, 0.1, 0.01])


@given(start=st.floats(1e-8, 1e-3), factor=st.floats(1.1, 1e6), steps=st.integers(2, 200))
def test_exponential_rises_by_equal_ratios(start, factor, steps):
    schedule = Exponential(start, start * factor, steps)
    assert schedule.rate(0) == pytest.approx(start)
    assert schedule.rate(steps - 1) == pytest.approx(start * factor)
    ratio = math.log(schedule.rate(1) / schedule.rate(0))
    assert ratio == pytest.approx(math.log(factor) / (steps - 1))
