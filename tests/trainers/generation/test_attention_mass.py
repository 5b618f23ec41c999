"""Fewest tokens and estimates of mass against published reference numbers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from trainers.generation.sparse_attention.oracle import fewest
from trainers.generation.sparse_attention.tail_estimates import curve, exact, fewest_in_order, fitted, stratified

REFERENCE = json.loads((Path(__file__).parents[2] / "data/attention_mass.json").read_text())


def scores(vector: dict[str, Any]) -> np.ndarray:
    rng, shape = np.random.default_rng(vector["seed"]), (vector["N"], vector["d"])
    if vector["kind"] == "clustered":
        centres = rng.standard_normal((shape[0] // 32, shape[1]))
        keys = centres[rng.integers(0, len(centres), shape[0])] + 0.3 * rng.standard_normal(shape)
        query = 2 * centres[0] + 0.5 * rng.standard_normal(shape[1])
    else:
        keys, query = rng.standard_normal(shape), rng.standard_normal(shape[1])
        query = query * 3 if vector["kind"] == "peaked" else query
    return np.asarray(keys @ query / np.sqrt(shape[1]))


@pytest.mark.parametrize("vector", REFERENCE["vectors"], ids=lambda v: f"{v['kind']}-{v['N']}-{v['d']}")
def test_fewest_tokens_are_exact(vector: dict[str, Any]) -> None:
    mass = torch.from_numpy(scores(vector)).softmax(-1)
    assert mass.argmax() == vector["argmax"]
    for target, tokens in vector["min_tokens"].items():
        assert int(fewest(mass, float(target)).sum()) == tokens
        assert fewest_in_order(mass.sort(descending=True)[0].numpy(), float(target)) == tokens


@pytest.mark.parametrize("case", REFERENCE["fit_test"])
def test_a_curve_is_found_again_and_gives_the_budget(case: dict[str, Any]) -> None:
    weights = case["a"] / np.arange(1, case["n"] + 1) + case["b"]
    assert weights.sum() == pytest.approx(case["total"])
    assert curve((100, weights[99]), (5000, weights[4999])) == pytest.approx((case["a"], case["b"]), abs=1e-9)
    for target, tokens in case["K"].items():
        assert fewest_in_order(weights, float(target)) == tokens
        estimate = fewest_in_order(fitted(weights, case["n"] // 50, np.random.default_rng(0)), float(target))
        assert estimate == pytest.approx(tokens, rel=0.01, abs=2)


def test_estimates_know_the_head_and_strata_have_no_bias() -> None:
    weights = np.random.default_rng(0).pareto(1.5, 4000)
    weights = np.sort(weights)[::-1]
    for estimate in (exact, fitted, stratified):
        np.testing.assert_array_equal(estimate(weights, 80, np.random.default_rng(1))[:80], weights[:80])
    totals = [stratified(weights, 80, np.random.default_rng(seed)).sum() for seed in range(300)]
    spread = np.std(totals) / np.sqrt(len(totals))
    assert abs(np.mean(totals) - weights.sum()) < 5 * spread
