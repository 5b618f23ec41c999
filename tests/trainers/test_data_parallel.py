"""Several ranks train as one would: equal batches give equal weights, and every rank ends with the same model.

The ranks are processes of their own (rank.py); one group of each size does everything, and the tests look at it.
"""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import torch

from trainers import Trainer, TrainerOptions
from trainers.models.transformer import Transformer
from trainers.tasks.language_model import LanguageModel

RANK = Path(__file__).with_name("rank.py")


def run_ranks(ranks: int, folder: Path) -> list[dict]:
    processes = [subprocess.Popen([sys.executable, RANK, str(rank), str(ranks), folder]) for rank in range(ranks)]
    try:
        assert [process.wait(timeout=300) for process in processes] == [0] * ranks
    finally:
        for process in processes:
            process.kill()
    return [json.loads((folder / f"seen-{rank}.json").read_text()) for rank in range(ranks)]


# Sums of three and more ranks depend on how gradients are grouped; sums of two cannot.
@pytest.fixture(scope="module", params=[2, pytest.param(3, marks=pytest.mark.slow)])
def seen(request, tmp_path_factory) -> list[dict]:
    return run_ranks(request.param, tmp_path_factory.mktemp("ranks"))


def alone(batch_size: int, **options) -> Trainer:
    model = partial(Transformer, width=16, layers=1, heads=2, key_value_heads=1)
    task = LanguageModel(model, data=str(RANK), context=16)
    return Trainer(task, partial(torch.optim.SGD, momentum=0.9), TrainerOptions(batch_size, **options))


def test_ranks_that_share_a_batch_train_as_one_rank_with_all_of_it(seen):
    trainer = alone(batch_size=12)
    losses = trainer.train([0.1, 0.05, 0.2, 0.1])
    means = torch.tensor([rank["equal_batches"]["losses"] for rank in seen]).mean(dim=0)
    assert means.tolist() == pytest.approx(losses, rel=1e-6)
    for name in ("weights", "accumulated"):
        for mine, theirs in zip(trainer.model.parameters(), seen[0]["equal_batches"][name], strict=True):
            torch.testing.assert_close(mine.detach().flatten(), torch.tensor(theirs), atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("samples", [1, 5, 9, 13])
def test_validation_counts_every_sample_once(seen, samples):
    expected = alone(batch_size=4, validation_samples=samples).validate()
    for rank in seen:
        assert rank["equal_batches"]["validation"][str(samples)] == pytest.approx(expected, rel=1e-6)


def test_every_rank_has_the_same_model_batch_norm_included(seen):
    losses, hashes, validations = zip(*(rank["batch_norm"].values() for rank in seen), strict=True)
    assert len(set(hashes)) == 1
    assert all(validation == validations[0] for validation in validations)
    assert len({tuple(series) for series in losses}) == len(seen)  # each saw samples of its own


def test_steps_after_a_restore_equal_the_steps_before_on_every_rank(seen):
    for rank in seen:
        first, *others = rank["restores"]["outcomes"]
        assert others == [first, first]
        before, after = rank["restores"]["again"]
        assert before == after
    assert len({rank["restores"]["outcomes"][0][1] for rank in seen}) == 1


def test_ranks_stop_together_though_one_alone_sees_a_reason(seen):
    assert [rank["stops_together"] for rank in seen] == [1] * len(seen)
