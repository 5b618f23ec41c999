"""Every task learns its real data within seconds, and its splits share nothing."""

import importlib.util
from functools import partial
from pathlib import Path

import pytest
import torch

from trainers import Task, Trainer, TrainerOptions
from trainers.models.transformer import Transformer
from trainers.tasks.image_classification import ImageClassification
from trainers.tasks.language_model import LanguageModel
from trainers.tasks.tabular import Tabular

ADAMW = partial(torch.optim.AdamW, fused=True)
OWN_TASK = Path(__file__).parents[2] / "examples" / "own_task.py"


def small_language_model() -> LanguageModel:
    return LanguageModel(partial(Transformer, width=32, layers=1, heads=2, key_value_heads=1), context=32)


def own_task() -> Task:
    spec = importlib.util.spec_from_file_location("own_task", OWN_TASK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Sine()


# Validation loss must fall below the last column. For bytes 5.5 is guessing, 3.02 knowing their frequencies alone.
LEARNING = [
    (small_language_model, 120, 1e-2, 2.6),
    (ImageClassification, 60, 1e-2, 0.3),
    (Tabular, 60, 1e-2, 0.15),
    (partial(Tabular, data="iris"), 60, 1e-2, 0.35),
    (partial(Tabular, data="diabetes"), 60, 3e-3, 0.65),
    (own_task, 200, 1e-2, 0.01),
]


@pytest.mark.parametrize(("make", "steps", "rate", "below"), LEARNING)
def test_a_task_learns(make, steps, rate, below):
    trainer = Trainer(make(), ADAMW, TrainerOptions(batch_size=16, validation_samples=256))
    before = trainer.validate()["loss"]
    losses = trainer.train([rate] * steps)
    assert len(losses) == trainer.step == steps
    assert trainer.validate()["loss"] < min(below, before)
    assert trainer.validate("test")["loss"] < min(1.3 * below, before)


@pytest.mark.parametrize("make", [ImageClassification, Tabular, partial(Tabular, data="diabetes"), own_task])
def test_no_sample_is_in_two_splits(make):
    splits = make().build_data()
    rows = [
        {sample.numpy().tobytes() for sample in part[torch.arange(len(part))][0]}
        for part in (splits.train, splits.validation, splits.test)
    ]
    assert all(len(part) > 20 for part in rows)
    assert len(set.union(*rows)) == sum(map(len, rows))


def test_classifiers_report_their_accuracy():
    trainer = Trainer(ImageClassification(), ADAMW, TrainerOptions(batch_size=32))
    trainer.train([1e-2] * 60)
    assert trainer.validate("test")["accuracy"] > 0.9


def test_a_language_model_is_scored_by_perplexity_and_shows_a_sample():
    trainer = Trainer(small_language_model(), ADAMW, TrainerOptions(batch_size=16, validation_samples=64))
    metrics, samples = trainer.evaluate()
    assert metrics["perplexity"] == pytest.approx(256, rel=0.15)  # a fresh model guesses evenly
    assert len(samples[0].encode(errors="replace")) >= 128
    assert trainer.evaluate() == (metrics, samples)
    validated = trainer.validate()
    assert validated["bits_per_byte"] == pytest.approx(8, abs=0.2)
    assert validated["loss"] == pytest.approx(torch.tensor(metrics["perplexity"]).log().item(), abs=1e-4)


class Bigrams(torch.nn.Module):
    """Not a transformer: a table of what follows what."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(vocabulary, vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.table(tokens)


def test_a_model_of_ones_own_shows_a_sample_too():
    trainer = Trainer(LanguageModel(Bigrams, context=32), ADAMW, TrainerOptions(batch_size=16, validation_samples=64))
    _, samples = trainer.evaluate()
    assert len(samples[0].encode(errors="replace")) >= 128
    assert trainer.evaluate()[1] == samples


def test_a_task_of_ones_own_takes_at_most_25_lines():
    assert len(OWN_TASK.read_text().splitlines()) <= 25
