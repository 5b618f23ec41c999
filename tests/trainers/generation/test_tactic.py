"""Clusters, their growth, and the audit that keeps a promise."""

import numpy as np
import pytest
import torch

from trainers.errors import GenerationError
from trainers.generation.sparse_attention.audit import InnerTarget, Trust
from trainers.generation.sparse_attention.cluster_index import ClusterIndex, ClusterSettings
from trainers.generation.sparse_attention.clustering import cluster
from trainers.generation.sparse_attention.method import LayerStore
from trainers.generation.sparse_attention.selection import attained
from trainers.generation.sparse_attention.tactic import Tactic


def store_of(tokens: int, room: int = 0, seed: int = 0) -> LayerStore:
    keys = torch.randn(2, tokens + room, 8, generator=torch.Generator().manual_seed(seed))
    return LayerStore(keys, keys.clone(), 0, tokens)


def test_clusters_are_runs_around_their_means() -> None:
    store = store_of(3000)
    before = store.keys.clone()
    found = cluster(store.keys, store.values, size=30, iterations=8, seed=0)
    assert torch.equal(store.keys, store.values)
    assert torch.equal(store.keys.sort(1)[0], before.sort(1)[0])
    assert found.sizes.sum(1).tolist() == [3000, 3000]
    assert found.means.shape == (2, 100, 8)
    for row in range(2):
        owners = np.repeat(np.arange(100), found.sizes[row])
        for owner in range(100):
            mean = store.keys[row, owners == owner].mean(0)
            np.testing.assert_allclose(found.means[row, owner], mean, atol=1e-5)


def test_separate_groups_are_found() -> None:
    centres = 50 * torch.randn(1, 6, 8, generator=torch.Generator().manual_seed(1))
    keys = centres.repeat_interleave(40, 1)[:, torch.randperm(240, generator=torch.Generator().manual_seed(2))]
    cluster(keys, keys.clone(), size=10, iterations=10, seed=0)
    assert (keys[:, 1:] != keys[:, :-1]).any(-1).sum() == 5


def test_late_tokens_are_clustered_when_enough_are_there_and_layers_take_turns() -> None:
    settings = ClusterSettings(size=8, stretch=64, sinks=4, recent=16)
    when = []
    for layer in (0, 3):
        store = store_of(200, room=100)
        index = ClusterIndex(store, settings, patience=layer)
        assert index.bounds == (0, 4, 184, 184, 200)
        clusters, steps = index.means.shape[1], 0
        while index.means.shape[1] == clusters:
            store.length += 1
            steps += 1
            index.update()
        when.append(steps)
        assert index.means.shape[1] == clusters + 8
        assert (index.starts[:, -1] + index.sizes[:, -1] == 184 + 64).all()
    assert when == [64, 67]


def test_the_inner_target_rises_when_heads_fall_short_and_comes_back() -> None:
    inner = InnerTarget(0.9)
    assert inner.value == pytest.approx(0.9)
    inner.learn(0.88)
    assert inner.value == pytest.approx(0.9)
    inner.learn(0.8)
    assert inner.value == pytest.approx(0.92)
    for _ in range(100):
        inner.learn(0.95)
    assert inner.value == pytest.approx(0.9)


def test_audits_report_what_each_head_attained() -> None:
    method = Tactic(0.9, ClusterSettings(size=8, sinks=4, recent=8), samples=32, dense_share=1, audit_every=2)
    store = store_of(400, room=40)
    reader = method.reader(5, store, torch.empty(0))
    rng = np.random.default_rng(0)
    for _ in range(40):
        store.length += 1
        reader.select(2 * rng.standard_normal((6, 8), dtype=np.float32))
    assert sorted(method.report.heads) == [(5, head) for head in range(6)]
    for found in method.report.heads.values():
        assert found.audits == 10
        assert 0.7 < found.least <= found.mean <= 1


def test_keys_that_compiled_code_cannot_read_are_refused() -> None:
    store = store_of(100)
    with pytest.raises(GenerationError, match=r"bfloat16 on cpu; move the model to the CPU"):
        Tactic().reader(2, LayerStore(store.keys.bfloat16(), store.values.bfloat16(), 0, 100), torch.empty(0))


def test_a_head_whose_scores_no_mean_tells_of_gets_its_mass_all_the_same() -> None:
    """Each query looks for one key, which lies hidden among others: what it would get of its own choice is nothing."""
    method = Tactic(0.9, ClusterSettings(size=32, sinks=4, recent=8), samples=16)
    store = store_of(2000, room=200)
    reader = method.reader(0, store, torch.empty(0))
    rng = np.random.default_rng(0)
    masses = []
    for _ in range(100):
        store.length += 1
        queries = 300 * rng.standard_normal((6, 8), dtype=np.float32)
        runs = reader.select(queries)
        masses.append(attained(store, queries, runs))
    assert min(found.least for found in method.report.heads.values()) < 0.1
    assert np.mean(masses[10:]) > 0.95


def test_trust_is_lost_by_heads_far_below_the_target_and_comes_back() -> None:
    trust = Trust(0.9)
    for _ in range(50):
        trust.learn(np.array([0.95, 0.86, 0.88]))
        assert trust.kept
    trust.learn(np.array([0.95, 0.0, 0.9]))
    assert not trust.kept
    for _ in range(10):
        trust.learn(np.ones(3))
    assert trust.kept
