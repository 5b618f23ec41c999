"""Tables: standardised by what is trained on, split the same way every time."""

import numpy as np
import pytest

from trainers.data.check import check_data
from trainers.data.shares import shares
from trainers.data.tables import CLASSIFICATION, REGRESSION, read_table
from trainers.errors import DataError


@pytest.mark.parametrize("name", CLASSIFICATION + REGRESSION)
def test_a_table_is_standardised_by_its_training_split(name):
    table = read_table(name)
    train = table["train"].features
    varying = train.std(axis=0) > 0
    assert np.abs(train.mean(axis=0)).max() < 1e-5
    assert train.std(axis=0)[varying] == pytest.approx(1, abs=1e-4)
    assert np.isfinite(table["test"].features).all()
    sizes = [len(table[split].targets) for split in ("train", "validation", "test")]
    assert [size / sum(sizes) for size in sizes] == pytest.approx([0.7, 0.15, 0.15], abs=0.01)


def test_shares_are_disjoint_whole_and_always_the_same():
    parts = shares(101, [0.7, 0.15, 0.15])
    assert sorted(np.concatenate(parts)) == list(range(101))
    assert all(np.array_equal(a, b) for a, b in zip(parts, shares(101, [0.7, 0.15, 0.15]), strict=True))


def test_an_unknown_table_is_answered_with_those_there_are():
    with pytest.raises(DataError, match=r"task.data=titanic is no table known here; choose breast_cancer, digits"):
        check_data({"_target_": "trainers.tasks.tabular.Tabular", "data": "titanic"})
