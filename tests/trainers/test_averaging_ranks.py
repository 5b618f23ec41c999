"""Averaged iterates on two real ranks: one average everywhere, as on one rank, with statistics of its own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from averaging_rank import OPTIMIZER, RATES, Line
from safetensors.torch import load_file

from trainers import Trainer, TrainerOptions
from trainers.averaging import BATCHES
from trainers.data.order import DataOrder

RANK = Path(__file__).with_name("averaging_rank.py")


@pytest.fixture(scope="module")
def group(tmp_path_factory):
    """What each rank saw, and where rank 0 saved its weights."""
    folder = tmp_path_factory.mktemp("ranks")
    ranks = [subprocess.Popen([sys.executable, RANK, str(rank), "2", folder]) for rank in range(2)]
    try:
        assert [process.wait(timeout=300) for process in ranks] == [0, 0]
    finally:
        for process in ranks:
            process.kill()
    return [json.loads((folder / f"seen-{rank}.json").read_text()) for rank in range(2)], folder


@pytest.mark.parametrize("name", ["norm", "plain"])
def test_every_rank_sees_one_average_however_often_it_looks(group, name):
    (first, second), _ = group
    assert first[name]["looks"] == second[name]["looks"]
    assert all(once == twice for once, twice in first[name]["looks"])
    assert first[name]["losses"] != second[name]["losses"]  # each has samples of its own
    assert first[name]["statistics"] == second[name]["statistics"]


def test_the_average_is_that_of_one_rank_with_the_whole_batch(group):
    (first, _), folder = group
    alone = Trainer(Line(norm=False), OPTIMIZER, TrainerOptions(8))
    alone.train(RATES * 2)
    alone.save_weights(folder / "alone.safetensors")
    expected, found = load_file(folder / "alone.safetensors"), load_file(folder / "plain.safetensors")
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, rtol=1e-5, atol=1e-6)
    assert first["plain"]["looks"][1][0][0]["loss"] == pytest.approx(alone.validate()["loss"], rel=1e-5)


def test_statistics_of_batch_norm_are_the_averages_own(group):
    """Means over fixed batches under the averaged weights, not those gathered on the way by either rank."""
    (first, _), folder = group
    state = load_file(folder / "norm.safetensors")
    features = Line(norm=True).build_data().train.tensors[0]
    order = DataOrder(48, 4, 1, 0)
    outputs = [
        features[torch.from_numpy(order.indices(number, 0))] @ state["0.weight"].T + state["0.bias"]
        for number in range(BATCHES)
    ]
    torch.testing.assert_close(state["1.running_mean"], torch.stack([each.mean(0) for each in outputs]).mean(0))
    torch.testing.assert_close(state["1.running_var"], torch.stack([each.var(0) for each in outputs]).mean(0))
    assert state["1.running_mean"].tolist() not in first["norm"]["statistics"]


def test_looking_leaves_no_trace_on_any_rank(group):
    """Steps after a look are those of one rank that never looked."""
    (first, second), _ = group
    alone = Trainer(Line(norm=False), OPTIMIZER, TrainerOptions(8))
    losses = alone.train(RATES * 2)
    means = torch.tensor([first["plain"]["losses"], second["plain"]["losses"]]).mean(0).flatten()
    assert means.tolist() == pytest.approx(losses, rel=1e-4)
