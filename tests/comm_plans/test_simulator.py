"""The simulator agrees with what can be worked out by hand, and with the exact optimum for long messages."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_plans import random_plan, ring_all_gather

from comm_plans.errors import PlansError
from comm_plans.fabrics import fabric
from comm_plans.forest.pipeline import pipeline
from comm_plans.plan import COLLECTIVES, Plan
from comm_plans.simulator import simulate
from comm_plans.solve import solve

SIZE = 4 * 10**9


def test_a_ring_by_hand() -> None:
    """Four ranks, 10 GB/s: three synchronous steps of a quarter of 4 GB, all links alike."""
    outcome = simulate(ring_all_gather(4), SIZE, latency=1e-3, chunks=1)
    assert outcome.seconds == pytest.approx(3 * (0.1 + 1e-3))
    assert outcome.steps == 3
    assert outcome.fluid_seconds == Fraction(3, 10)
    assert outcome.algbw == pytest.approx(4 / outcome.seconds)
    assert {link.bytes for link in outcome.links} == {3 * 10**9}
    assert outcome.busiest.utilisation == pytest.approx(0.3 / outcome.seconds)


def test_stated_latencies_replace_the_default() -> None:
    outcome = simulate(ring_all_gather(3, latency=Fraction(1, 10)), SIZE, latency=5.0, chunks=1)
    assert outcome.seconds == pytest.approx(float(outcome.fluid_seconds) + 2 * 0.1)


def slow_reference(plan: Plan, size: int, latency: float, chunks: int) -> float:
    """Every chunk of every tree by itself: a hop goes one step after the latest hop that it waits for."""
    moves: dict[int, dict[tuple[int, int], Fraction]] = {}
    sums: dict[Fraction, int] = {}
    for tree in plan.trees:
        ready: dict[int, int] = {}
        first = sums.get(tree.start, 0) if tree.operation == "broadcast" else 0
        for path in tree.paths:
            step = ready.get(path[0], first)
            ready[path[-1]] = max(ready.get(path[-1], 0), step + 1)
            for chunk in range(chunks):
                loads = moves.setdefault(step + chunk, {})
                for link in pairwise(path):
                    loads[link] = loads.get(link, Fraction(0)) + tree.share / chunks
        if tree.operation == "reduce":
            sums[tree.start] = ready[tree.root]
    capacities = plan.topology.capacities
    slowest = (max(load / capacities[link] for link, load in loads.items()) for loads in moves.values())
    return float(sum(slowest) * size / 10**9) + latency * len(moves)


@settings(max_examples=60)
@given(
    collective=st.sampled_from([name for name in COLLECTIVES if name != "all_reduce"]),
    ranks=st.integers(2, 6),
    seed=st.integers(0, 10**6),
    chunks=st.integers(1, 9),
)
def test_vectorised_steps_equal_a_slow_replay(collective: str, ranks: int, seed: int, chunks: int) -> None:
    plan = random_plan(collective, ranks, seed)
    outcome = simulate(plan, SIZE, latency=1e-3, chunks=chunks)
    assert outcome.seconds == pytest.approx(slow_reference(plan, SIZE, 1e-3, chunks))


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_long_messages_reach_the_plan_s_bandwidth(collective: str) -> None:
    plan = random_plan(collective, 5, 2)
    reached = [simulate(plan, 10**exponent).algbw / float(plan.algbw) for exponent in (6, 9, 12, 15)]
    assert reached == sorted(reached)
    assert 0.999 < reached[-1] <= 1


@pytest.mark.parametrize("name", ["dgx_a100:boxes=2", "dgx1_v100:boxes=2", "torus:shape=3x3"])
@pytest.mark.parametrize("collective", ["all_gather", "all_reduce"])
def test_long_messages_reach_the_network_s_exact_optimum(name: str, collective: str) -> None:
    plan = solve(fabric(name), collective)
    outcome = simulate(plan, 10**15)
    assert outcome.fluid_seconds == Fraction(10**6) / plan.optimum
    assert outcome.algbw == pytest.approx(float(plan.optimum), rel=1e-3)
    assert outcome.busiest.utilisation == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_a_chunked_plan_takes_as_long_as_its_forest_in_chunks(collective: str) -> None:
    forest = random_plan(collective, 4, 5)
    stepped = simulate(pipeline(forest, 6), SIZE, latency=1e-3)
    assert stepped.seconds == pytest.approx(simulate(forest, SIZE, latency=1e-3, chunks=6).seconds)
    assert float(stepped.fluid_seconds) == pytest.approx(stepped.seconds - 1e-3 * stepped.steps)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"size_bytes": 0}, "at least one byte"),
        ({"size_bytes": 1, "latency": -1.0}, "zero or more"),
        ({"size_bytes": 1, "latency": float("nan")}, "zero or more"),
        ({"size_bytes": 1, "chunks": 0}, "one or more"),
    ],
)
def test_wrong_questions(arguments: dict[str, float], words: str) -> None:
    with pytest.raises(PlansError, match=words):
        simulate(ring_all_gather(3), **arguments)
