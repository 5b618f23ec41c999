"""All-to-all in synchronous steps: published sums of durations, and schedules that replay chunk by chunk."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from direct_networks import REFERENCE, de_bruijn, gen_kautz, random_network, reference

from comm_plans.all_to_all.direct import direct_all_to_all
from comm_plans.all_to_all.direct.timed_check import replay_steps
from comm_plans.all_to_all.direct.timed_flows import TimedResult, timed_all_to_all
from comm_plans.errors import PlanError, PlansError
from comm_plans.fabrics import fabric

PUBLISHED = [
    (name, int(steps), value)
    for name, entry in REFERENCE["topologies"].items()
    for steps, value in entry.get("tsmcf_total_time", {}).items()
]


def assert_sound(result: TimedResult) -> None:
    """What chunks take is replayed, lies above the fluid sum, and that above what the duals prove."""
    schedule = result.schedule
    whole = sum(schedule.durations)
    assert float(result.bound) <= float(result.fluid) * (1 + 1e-12) <= float(whole) * (1 + 1e-6)
    again = replay_steps(schedule.topology, schedule.demand, schedule.chunks, schedule.transfers, schedule.steps)
    assert again == schedule.durations


@pytest.mark.parametrize(("name", "steps", "value"), PUBLISHED)
def test_published_sums(name: str, steps: int, value: float) -> None:
    result = timed_all_to_all(reference(name), steps=steps)
    assert float(result.fluid) == pytest.approx(value, rel=1e-7)
    assert float(result.bound) == pytest.approx(value, rel=1e-7)
    assert_sound(result)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("topology", "steps", "value"),
    [
        (gen_kautz(27, 4), 3, 15.07466),
        (gen_kautz(27, 4), 4, 761 / 51),
        (gen_kautz(32, 4), 4, 85 / 4),
        (de_bruijn(2, 4), 4, 32),
        (de_bruijn(2, 4), 5, 77 / 3),
        (fabric("torus:shape=3x3x3"), 3, 9),
    ],
)
def test_larger_sums(topology, steps: int, value: float) -> None:
    result = timed_all_to_all(topology, steps=steps)
    assert float(result.fluid) == pytest.approx(value, rel=5e-7)
    assert_sound(result)


@pytest.mark.parametrize("seed", range(25))
def test_random_schedules_replay(seed: int) -> None:
    topology = random_network(seed, most=5)
    assert_sound(result := timed_all_to_all(topology, chunks=1 + seed % 7))
    assert float(result.fluid) >= float(1 / direct_all_to_all(topology).bound) * (1 - 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 300))
def test_many_random_schedules_replay(seed: int) -> None:
    assert_sound(timed_all_to_all(random_network(seed, most=6), chunks=1 + seed % 9))


def test_more_steps_are_taken_only_where_they_pay() -> None:
    topology = gen_kautz(8, 4)  # 2 steps of 4 shards' time in sum, 3 steps of 3.5
    assert timed_all_to_all(topology).schedule.steps == 3
    slow, fast = (timed_all_to_all(topology, latency=latency, pair_bytes=10**9) for latency in (0.6, 0.4))
    assert (slow.schedule.steps, fast.schedule.steps) == (2, 3)
    assert slow.schedule.seconds(0.6, 10**9) == pytest.approx(2 * 0.6 + 4)


def test_unequal_traffic_in_steps() -> None:
    traffic = np.random.default_rng(0).integers(0, 5, (6, 6)) * 1000
    result = timed_all_to_all(fabric("ring:ranks=6"), traffic, chunks=16)
    assert_sound(result)
    steady = direct_all_to_all(fabric("ring:ranks=6"), traffic)
    assert float(result.fluid) == pytest.approx(float(steady.seconds) * 1e9, rel=1e-6)


@pytest.mark.parametrize("name", ["star:ranks=4", "fat_tree:leaves=2,ranks=2", "dgx_a100"])
def test_a_switch_is_passed_within_a_step(name: str) -> None:
    topology = fabric(name)
    result = timed_all_to_all(topology)
    assert result.schedule.steps == 1
    assert result.fluid == 1 / direct_all_to_all(topology).pair_rate
    assert_sound(result)


@pytest.mark.parametrize("chunks", [0, -1, 10**6])
def test_chunks_that_make_no_sense(chunks: int) -> None:
    with pytest.raises(PlansError, match="ask for 1 to 65536"):
        timed_all_to_all(fabric("ring:ranks=3"), chunks=chunks)


def test_too_few_steps() -> None:
    with pytest.raises(PlansError, match="farthest ranks are 4 hops apart; allow at least"):
        timed_all_to_all(fabric("torus:shape=4x4"), steps=3)


@pytest.mark.parametrize("how", ["lost", "too early", "no link", "elsewhere", "twice", "through a rank", "backwards"])
def test_wrong_schedules_are_refused(how: str) -> None:
    schedule = timed_all_to_all(fabric("ring:ranks=4"), chunks=2).schedule
    moves = list(schedule.transfers)
    relayed = next(place for place, each in enumerate(moves) if each.step == 1)
    wrong = {
        "lost": moves[:-1],
        "too early": [replace(moves[relayed], step=0), *moves[:relayed], *moves[relayed + 1 :]],
        "no link": [replace(moves[0], path=(moves[0].path[0], (moves[0].path[0] + 2) % 4)), *moves[1:]],
        "elsewhere": [replace(moves[0], destination=moves[0].origin), *moves[1:]],
        "twice": [moves[0], *moves],
        "through a rank": [replace(moves[0], path=(0, 1, 2)), *moves[1:]],
        "backwards": [replace(each, step=schedule.steps - 1 - each.step) for each in moves],
    }[how]
    with pytest.raises(PlanError):
        replay_steps(schedule.topology, schedule.demand, schedule.chunks, tuple(wrong), schedule.steps)


def test_durations_are_exact() -> None:
    schedule = timed_all_to_all(fabric("ring:ranks=4")).schedule
    assert sum(schedule.durations) == 2
    assert all(isinstance(each, Fraction) for each in schedule.durations)
