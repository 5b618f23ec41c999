"""Tokens are drawn as their probabilities say."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainers.generation.sampling import draw, nucleus


@given(st.lists(st.floats(-6, 6), min_size=1, max_size=600), st.floats(0.01, 1))
def test_a_nucleus_is_the_fewest_likeliest_tokens_that_hold_the_share(logits, top_p):
    probabilities = torch.tensor(logits, dtype=torch.float64).softmax(-1)
    kept, tokens = nucleus(probabilities, top_p)
    assert torch.equal(probabilities[tokens], kept)
    assert float(kept.sum()) >= top_p - 1e-12
    assert float(kept[:-1].sum()) < top_p + 1e-12
    others = np.delete(probabilities.numpy(), tokens.numpy())
    assert not len(others) or others.max() <= float(kept.min())


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.5, 1.0), (2.0, 0.8), (1.0, 0.3)])
def test_draws_follow_the_probabilities(temperature, top_p):
    logits = torch.tensor([2.0, -1.0, 0.5, 1.5, -3.0, 0.0])
    expected = (logits.double() / temperature).softmax(-1)
    order = expected.argsort(descending=True)
    dropped = order[1:][expected[order].cumsum(0)[:-1] >= top_p]
    expected[dropped] = 0
    expected /= expected.sum()
    uniforms = (np.arange(2000) + 0.5) / 2000  # a draw's share is that of the interval it owns
    drawn = np.bincount([draw(logits, temperature, top_p, u) for u in uniforms], minlength=6) / 2000
    np.testing.assert_allclose(drawn, expected.numpy(), atol=1.5e-3)


def test_a_nucleus_wider_than_what_is_looked_at_first_is_whole():
    kept, _ = nucleus(torch.full((5000,), 1 / 5000, dtype=torch.float64), 0.7)
    assert len(kept) == pytest.approx(3500, abs=1)


@given(st.floats(0, 1, exclude_max=True))
def test_a_token_without_probability_is_never_drawn(uniform):
    logits = torch.tensor([-torch.inf, 0.0, -torch.inf, 1.0, -torch.inf])
    assert draw(logits, 1.0, 1.0, uniform) in (1, 3)


def test_at_a_very_low_temperature_the_likeliest_token_is_drawn():
    assert {draw(torch.tensor([0.0, 1.0, 0.99]), 1e-3, 1.0, u) for u in (0.0, 0.5, 0.999)} == {1}
