"""Chunked schedules verify like any plan, are best at the count they claim, and approach the forest's bandwidth."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_plans import random_plan, ring_all_gather

from comm_plans.errors import PlansError
from comm_plans.forest.pipeline import best_chunks, pipeline, windows
from comm_plans.plan import COLLECTIVES
from comm_plans.simulator import simulate
from comm_plans.verifier import verify


@settings(max_examples=40)
@given(
    collective=st.sampled_from(COLLECTIVES),
    ranks=st.integers(2, 5),
    seed=st.integers(0, 10**6),
    chunks=st.integers(1, 6),
)
def test_every_chunked_plan_verifies(collective: str, ranks: int, seed: int, chunks: int) -> None:
    verify(pipeline(random_plan(collective, ranks, seed), chunks).to_document())


def test_more_chunks_approach_the_forest_s_bandwidth() -> None:
    forest = ring_all_gather(5)
    algbw = [pipeline(forest, chunks).algbw / forest.algbw for chunks in (1, 4, 16, 64)]
    assert algbw == sorted(algbw)
    assert algbw[0] == 1, "a ring is balanced in each step, even unchunked"
    tree = random_plan("broadcast", 5, 3, trees_a_root=1)
    depth = tree.depth
    for chunks in (1, 4, 16, 64):
        assert pipeline(tree, chunks).algbw >= tree.algbw * Fraction(chunks, chunks + depth - 1)


@given(
    levels=st.integers(1, 40),
    bandwidth_seconds=st.floats(1e-6, 10),
    latency=st.floats(1e-7, 1e-2),
    most=st.integers(1, 3000),
)
def test_best_chunks_is_the_best_of_all(levels: int, bandwidth_seconds: float, latency: float, most: int) -> None:
    def seconds(chunks: int) -> float:
        return (chunks + levels - 1) * (latency + bandwidth_seconds / chunks)

    best = best_chunks(levels, bandwidth_seconds, latency, most)
    assert 1 <= best <= most
    assert seconds(best) <= min(map(seconds, range(1, most + 1))) * (1 + 1e-12)


def test_the_chunk_count_that_is_best_in_the_formula_is_nearly_best_in_the_simulator() -> None:
    plan = random_plan("all_gather", 6, 4)
    default = simulate(plan, 10**8)
    best = min(simulate(plan, 10**8, chunks=chunks).seconds for chunks in range(1, 3 * default.chunks))
    assert default.seconds <= 1.05 * best


@given(levels=st.integers(1, 12), chunks=st.integers(1, 12))
def test_windows_are_the_levels_at_work_in_each_step(levels: int, chunks: int) -> None:
    steps = [(first, end) for count, first, end in windows(levels, chunks) for _ in range(count)]
    at_work = [[level for level in range(levels) if 0 <= step - level < chunks] for step in range(levels + chunks - 1)]
    assert [list(range(*window)) for window in steps] == at_work


def test_only_forests_are_chunked_and_only_so_far() -> None:
    forest = ring_all_gather(4)
    with pytest.raises(PlansError, match="has steps already"):
        pipeline(pipeline(forest, 2), 2)
    for chunks in (0, 10**7):
        with pytest.raises(PlansError, match="give 1 to"):
            pipeline(forest, chunks)


def test_the_tiniest_latency_takes_as_many_chunks_as_there_may_be() -> None:
    assert best_chunks(4, 1.0, 1e-320, 1000) == 1000
