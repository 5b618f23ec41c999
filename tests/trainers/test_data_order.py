"""The data order is a function of (seed, step, rank), whatever was asked before."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainers.data.order import DataOrder
from trainers.errors import DataError

orders = st.builds(
    DataOrder,
    samples=st.integers(24, 200),
    batch_size=st.integers(1, 6),
    world_size=st.integers(1, 4),
    seed=st.integers(0, 2**40),
)


def global_batch(order: DataOrder, step: int) -> np.ndarray:
    return np.concatenate([order.indices(step, rank) for rank in range(order.world_size)])


@given(orders, st.integers(0, 3))
def test_an_epoch_shows_no_sample_twice_and_drops_less_than_a_batch(order, epoch):
    steps = range(epoch * order.steps_per_epoch, (epoch + 1) * order.steps_per_epoch)
    seen = np.concatenate([global_batch(order, step) for step in steps])
    assert len(set(seen)) == len(seen)
    assert 0 <= order.samples - len(seen) < order.batch_size * order.world_size
    assert seen.min() >= 0
    assert seen.max() < order.samples


@given(orders, st.lists(st.integers(0, 500), min_size=1, max_size=20))
def test_a_step_sees_the_same_samples_in_any_order_of_asking(order, steps):
    forward = {step: global_batch(order, step).tolist() for step in sorted(steps)}
    twin = DataOrder(order.samples, order.batch_size, order.world_size, order.seed)
    assert all(global_batch(twin, step).tolist() == forward[step] for step in steps)


@given(st.integers(0, 300), st.integers(0, 2**40), st.sampled_from([1, 2, 3, 4, 6, 12]))
def test_the_global_batch_does_not_depend_on_the_number_of_ranks(step, seed, world_size):
    alone = DataOrder(100, 12, 1, seed)
    together = DataOrder(100, 12 // world_size, world_size, seed)
    assert global_batch(together, step).tolist() == global_batch(alone, step).tolist()


def test_seeds_and_epochs_give_other_orders():
    first = DataOrder(1000, 10, 1, seed=0)
    assert global_batch(first, 0).tolist() != global_batch(DataOrder(1000, 10, 1, seed=1), 0).tolist()
    assert global_batch(first, 0).tolist() != global_batch(first, first.steps_per_epoch).tolist()


def test_data_smaller_than_a_batch_are_refused():
    with pytest.raises(DataError, match="holds 7 samples, fewer than one step's 4 × 2 ranks; lower batch_size"):
        DataOrder(7, 4, 2, 0)
