"""Stages between servers: exact sums, few of them, and the published ones in the published order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from comm_plans.all_to_all.birkhoff import Stages, birkhoff, published_birkhoff, quantised_birkhoff
from comm_plans.all_to_all.birkhoff_kernels import embedded

MATRICES = st.integers(1, 9).flatmap(
    lambda size: arrays(np.int64, (size, size), elements=st.one_of(st.integers(0, 3), st.integers(0, 2**50)))
)


def longest_line(matrix: np.ndarray) -> int:
    return int(max(matrix.sum(0).max(), matrix.sum(1).max()))


def added_up(stages: Stages, size: int) -> np.ndarray:
    total = np.zeros((size, size), np.int64)
    for partners, weight in zip(stages.partners, stages.weights, strict=True):
        assert sorted(partners) == list(range(size))
        assert weight > 0
        total[np.arange(size), partners] += weight
    return total


@settings(max_examples=150)
@given(MATRICES)
@pytest.mark.parametrize("decompose", [birkhoff, published_birkhoff])
def test_stages_add_up_exactly(decompose, matrix):
    size = len(matrix)
    stages = decompose(matrix)
    padding = added_up(stages, size) - matrix
    assert padding.min() >= 0
    assert stages.weights.sum() == longest_line(matrix)
    assert len(stages.weights) <= size * size - 2 * size + 2


@settings(max_examples=60)
@given(MATRICES, st.sampled_from([1, 4, 16, 64]))
def test_quantised_stages_cover_the_matrix(matrix, parts):
    stages, longest = quantised_birkhoff(matrix, parts), longest_line(matrix)
    assert (added_up(stages, len(matrix)) >= matrix).all()
    unit = max(1, -(-longest // (parts * len(matrix))))
    assert stages.weights.sum() <= longest + len(matrix) * unit


def plain_stages(matrix: np.ndarray) -> list[tuple[list[int], int]]:
    """The published search, word for word: a depth-first augmenting path for each row, columns in order."""
    left, size = embedded(matrix), len(matrix)
    stages = []
    while left.any():
        row_of = [-1] * size

        def placed(row: int, visited: set[int], row_of: list[int] = row_of) -> bool:
            for column in range(size):
                if left[row, column] > 0 and column not in visited:
                    visited.add(column)
                    if row_of[column] < 0 or placed(row_of[column], visited):
                        row_of[column] = row
                        return True
            return False

        assert all(placed(row, set()) for row in range(size))
        partners = np.argsort(row_of)
        weight = int(left[np.arange(size), partners].min())
        left[np.arange(size), partners] -= weight
        stages.append((partners.tolist(), weight))
    return stages


@settings(max_examples=60)
@given(MATRICES)
def test_published_stages_come_in_the_published_order(matrix):
    stages = published_birkhoff(matrix)
    found = list(zip(stages.partners.tolist(), stages.weights.tolist(), strict=True))
    assert found == plain_stages(matrix)


def test_padding_follows_the_north_west_corner():
    matrix = np.array([[0, 5, 1], [2, 0, 0], [0, 1, 0]])
    assert embedded(matrix).tolist() == [[0, 5, 1], [6, 0, 0], [0, 1, 5]]


@pytest.mark.parametrize("servers", [16, 32, 64, 128])
@pytest.mark.parametrize("kind", ["uniform", "zipf"])
def test_few_stages_suffice(servers, kind):
    generator = np.random.default_rng(servers)
    matrix = generator.integers(0, 2**27, (servers, servers))
    if kind == "zipf":
        matrix = (2**40 * generator.permutation(np.arange(1, servers**2 + 1)) ** -1.2).astype(np.int64)
        matrix = matrix.reshape(servers, servers)
    np.fill_diagonal(matrix, 0)
    stages = birkhoff(matrix)
    assert len(stages.weights) <= 8 * servers
    assert stages.weights.sum() == longest_line(matrix)


def test_sums_up_to_sixty_two_bits():
    matrix = np.array([[0, 2**61], [2**61 + 2**60, 0]])
    for decompose in (birkhoff, published_birkhoff):
        assert decompose(matrix).weights.sum() == 2**61 + 2**60
