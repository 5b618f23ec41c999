"""Attention over runs: the compiled and the torch way against softmax taken in float64, whatever the runs are like."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from trainers import threads
from trainers.generation import kernels
from trainers.generation.kernels import attend_runs, attend_runs_torch
from trainers.generation.runs import Runs, Scores
from trainers.generation.scoring import exponential

Floats = NDArray[np.float32]
WAYS = [attend_runs, attend_runs_torch]


def plainly(queries: Floats, keys: Floats, values: Floats, runs: Runs) -> NDArray[np.float64]:
    """Head by head, token by token, in float64."""
    heads, width = queries.shape[1:]
    key_value_heads = len(keys)
    group = heads // key_value_heads
    attended = np.zeros(queries.shape)
    for row in range(runs.rows):
        mine = range(runs.offsets[row], runs.offsets[row + 1])
        slots = np.concatenate([np.arange(runs.starts[i], runs.starts[i] + runs.lengths[i]) for i in mine])
        sequence, shared = divmod(row, key_value_heads)
        for head in range(shared * group, (shared + 1) * group):
            scores = keys[shared, slots].astype(np.float64) @ queries[sequence, head] / np.sqrt(width)
            weights = np.exp(scores - scores.max())
            attended[sequence, head] = weights @ values[shared, slots] / weights.sum()
    return attended


def problem(
    seed: int, batch: int, key_value_heads: int, group: int, width: int, slots: int
) -> tuple[Floats, Floats, Floats, Runs]:
    """Random queries, keys and values, and for each row some disjoint runs, of which some are empty but never all."""
    rng = np.random.default_rng(seed)
    queries = 3 * rng.standard_normal((batch, key_value_heads * group, width), dtype=np.float32)
    keys, values = rng.standard_normal((2, key_value_heads, slots, width), dtype=np.float32)
    rows = []
    for _ in range(batch * key_value_heads):
        cuts = np.unique(rng.integers(0, slots + 1, rng.integers(2, 9)))
        cuts = cuts if len(cuts) > 1 else np.array([0, slots])
        order = rng.permutation(len(cuts) - 1)
        starts, lengths = cuts[:-1][order], np.diff(cuts)[order] - (rng.random(len(order)) < 0.3)
        lengths[0] = max(lengths[0], 1)
        rows.append(Runs(starts, lengths, np.array([0, len(starts)])))
    return queries, keys, values, Runs.joined(rows)


@pytest.mark.parametrize("way", WAYS)
@given(
    seed=st.integers(0, 2**32 - 1),
    batch=st.integers(1, 3),
    key_value_heads=st.integers(1, 3),
    group=st.integers(1, 4),
    width=st.integers(1, 40),
    slots=st.integers(2, 300),
    shares=st.integers(1, 5),
)
@settings(max_examples=60)
def test_both_ways_equal_the_plain_softmax(
    way: Callable[..., Floats], seed: int, batch: int, key_value_heads: int, group: int, width: int, slots: int,
    shares: int,
) -> None:  # fmt: skip
    queries, keys, values, runs = problem(seed, batch, key_value_heads, group, width, slots)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "shares_of", lambda _: shares)
        attended = way(queries, torch.from_numpy(keys), torch.from_numpy(values), runs)
    assert attended.dtype == np.float32
    np.testing.assert_allclose(attended, plainly(queries, keys, values, runs), atol=2e-5)


@given(seed=st.integers(0, 2**32 - 1), batch=st.integers(1, 3), shares=st.integers(1, 3))
@settings(max_examples=40)
def test_scores_that_are_known_give_the_same(seed: int, batch: int, shares: int) -> None:
    queries, keys, values, runs = problem(seed, batch, key_value_heads=2, group=3, width=16, slots=200)
    known = replace(runs, scores=scored(np.random.default_rng(seed), queries, keys, runs))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "shares_of", lambda _: shares)
        attended = attend_runs(queries, torch.from_numpy(keys), torch.from_numpy(values), known)
    np.testing.assert_allclose(attended, plainly(queries, keys, values, runs), atol=2e-5)


def scored(rng: np.random.Generator, queries: Floats, keys: Floats, runs: Runs) -> Scores:
    """Scores of about half of the runs."""
    shared = len(keys)
    group = queries.shape[1] // shared
    places, values = np.full(len(runs.starts), -1), [np.zeros((group, 1), np.float32)]
    for row in range(runs.rows):
        sequence, head = divmod(row, shared)
        scaled = queries[sequence, head * group : (head + 1) * group] / np.float32(np.sqrt(queries.shape[2]))
        for run in range(runs.offsets[row], runs.offsets[row + 1]):
            if rng.random() < 0.5:
                begin, length = runs.starts[run], runs.lengths[run]
                places[run] = sum(each.shape[1] for each in values)
                values.append(scaled @ keys[head, begin : begin + length].T)
    return Scores(places, np.concatenate(values, 1))


def test_keys_of_known_scores_are_not_read() -> None:
    keys, values = torch.full((1, 40, 4), torch.nan), torch.arange(160.0).reshape(1, 40, 4)
    runs = Runs(np.array([8]), np.array([24]), np.array([0, 1]), Scores(np.array([2]), np.ones((1, 26), np.float32)))
    attended = attend_runs(np.ones((1, 1, 4), np.float32), keys, values, runs)
    np.testing.assert_allclose(attended[0, 0], values[0, 8:32].mean(0), rtol=1e-6)


@pytest.mark.parametrize("way", WAYS)
def test_scores_far_apart_neither_overflow_nor_vanish(way: Callable[..., Floats]) -> None:
    keys = torch.tensor([[[300.0], [-300.0], [299.0]]])
    values = torch.tensor([[[1.0], [5.0], [2.0]]])
    runs = Runs(np.array([0]), np.array([3]), np.array([0, 1]))
    for sign, expected in ((1.0, (1 + 2 * np.exp(-1)) / (1 + np.exp(-1))), (-1.0, 5.0)):
        attended = way(np.full((1, 1, 1), sign, np.float32), keys, values, runs)
        assert attended.item() == pytest.approx(expected, rel=1e-6)


def test_keys_in_half_precision_go_by_torch() -> None:
    queries, keys, values, runs = problem(0, 2, 2, 3, 16, 200)
    halves = [torch.from_numpy(stored).to(torch.bfloat16) for stored in (keys, values)]
    rounded = [half.float().numpy() for half in halves]
    np.testing.assert_allclose(attend_runs(queries, *halves, runs), plainly(queries, *rounded, runs), atol=2e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_keys_on_a_gpu_give_the_same() -> None:
    queries, keys, values, runs = problem(0, 2, 2, 3, 64, 2000)
    there = [torch.from_numpy(stored).cuda() for stored in (keys, values)]
    np.testing.assert_allclose(attend_runs(queries, *there, runs), plainly(queries, keys, values, runs), atol=2e-5)


def test_exponential_is_within_a_few_ulps() -> None:
    xs = np.linspace(-87, 0, 20_001, dtype=np.float32)
    found = np.array([exponential(x) for x in xs])
    assert np.abs(found / np.exp(xs.astype(np.float64)) - 1).max() < 3e-7


def test_shares_run_side_by_side_and_their_errors_are_raised() -> None:
    seen: list[int] = []
    threads.in_shares(seen.append, 4)
    assert sorted(seen) == [0, 1, 2, 3]
    with pytest.raises(ZeroDivisionError):
        threads.in_shares(lambda share: 1 // (2 - share), 3)


def test_small_work_stays_in_one_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    assert [threads.shares_of(work) for work in (0, 1000, 1 << 20, 1 << 30)] == [1, 1, 2, 4]
