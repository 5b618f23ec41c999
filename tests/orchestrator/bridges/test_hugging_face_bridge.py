"""Hugging Face's Trainer with the callback: a tiny GPT-2 of random weights learns to count."""

from pathlib import Path

import pytest
import torch
from torch import nn

from orchestrator.errors import UserError
from orchestrator.learning_rate import History

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")
from orchestrator.bridges.hugging_face import AutoLRSCallback  # noqa: E402

STEPS = 200
SEQUENCES = [{"input_ids": torch.arange(at, at + 9) % 16, "labels": torch.arange(at, at + 9) % 16} for at in range(64)]


def model() -> nn.Module:
    torch.manual_seed(0)
    sizes = {"vocab_size": 16, "n_positions": 16, "n_embd": 16, "n_layer": 1, "n_head": 2}
    tokens = {"bos_token_id": 0, "eos_token_id": 0}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **tokens))


def trained(folder: Path, callback: AutoLRSCallback, max_steps: int, **options: object) -> nn.Module:
    arguments = transformers.TrainingArguments(
        output_dir=str(folder), max_steps=max_steps, per_device_train_batch_size=4, learning_rate=9.0, report_to=[],
        save_strategy="no", logging_strategy="no", disable_tqdm=True, use_cpu=True, seed=3, **options,
    )  # fmt: skip
    trainer = transformers.Trainer(model=model(), args=arguments, train_dataset=SEQUENCES, callbacks=[callback])
    trainer.train()
    return trainer.model


def held_out(net: nn.Module) -> float:
    assert not net.training
    with torch.no_grad():
        batch = torch.stack([each["input_ids"] for each in SEQUENCES[::5]])
        return float(net(input_ids=batch, labels=batch).loss)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    callback = AutoLRSCallback(STEPS, validate=held_out)
    trained(tmp_path_factory.mktemp("run"), callback, max_steps=1000)
    return callback.history


def test_it_ends_after_the_real_steps_and_learns(history: History) -> None:
    assert len(history.rates) == len(history.losses) == STEPS
    assert history.losses[0] > 2.4
    assert history.losses[-1] < 0.5
    assert max(history.rates) < 1


def test_the_same_again_gives_the_same(history: History, tmp_path: Path) -> None:
    callback = AutoLRSCallback(STEPS, validate=held_out)
    trained(tmp_path, callback, max_steps=1000)
    assert callback.history == history


def test_a_step_of_several_batches_counts_once(tmp_path: Path) -> None:
    callback = AutoLRSCallback(STEPS)
    trained(tmp_path, callback, max_steps=1000, gradient_accumulation_steps=2)
    assert len(callback.history.losses) == STEPS


def test_too_few_steps_for_the_search_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"max_steps is 200, and AutoLRSCallback may need \d+ for 200 real ones"):
        trained(tmp_path, AutoLRSCallback(STEPS), max_steps=200)
