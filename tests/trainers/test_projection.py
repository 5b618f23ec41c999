"""One row's product is the same in any number of threads, near the exact one, and torch's wherever gradients flow."""

import numpy as np
import pytest
import torch
from torch.nn.functional import linear

from trainers.models.projection import Projection, project
from trainers.models.row_product import Floats, row_product


@pytest.mark.parametrize("shape", [(1, 1, 70), (70,), (1, 70)])
def test_one_row_is_near_the_exact_product(shape: tuple[int, ...]) -> None:
    row, weight = torch.randn(shape), torch.randn(33, 70)
    exact = linear(row.double(), weight.double())
    torch.testing.assert_close(project(row, weight).double(), exact, rtol=0, atol=1e-4)


def test_two_threads_give_the_bits_of_one() -> None:
    row, weight = torch.randn(64).numpy(), torch.randn(20_000, 64).numpy()
    one, two = (_in_threads(threads, row, weight) for threads in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_gradients_flow_through_one_row() -> None:
    layer, row = Projection(8, 4), torch.randn(1, 8, requires_grad=True)
    layer(row).sum().backward()
    torch.testing.assert_close(row.grad, layer.weight.detach().sum(0, keepdim=True))


@pytest.mark.parametrize(
    ("rows", "weight"),
    [
        (torch.randn(2, 8), torch.randn(4, 8)),
        (torch.randn(1, 8).bfloat16(), torch.randn(4, 8).bfloat16()),
        (torch.randn(1, 8), torch.randn(8, 4).T),
    ],
)
def test_all_else_is_torchs_product(rows: torch.Tensor, weight: torch.Tensor) -> None:
    assert torch.equal(project(rows, weight), linear(rows, weight))


def test_autocast_is_left_to_torch() -> None:
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert Projection(8, 4)(torch.randn(1, 8)).dtype == torch.bfloat16


def _in_threads(threads: int, row: Floats, weight: Floats) -> Floats:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        return row_product(row, weight)
    finally:
        torch.set_num_threads(before)
