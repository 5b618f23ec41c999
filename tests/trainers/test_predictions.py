"""What tasks answer to inputs as they come from outside: in the data's own units, rows, images, texts."""

from functools import partial
from pathlib import Path

import gguf_files
import numpy as np
import pandas
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from trainers import Task, Trainer, TrainerOptions
from trainers.errors import DataError
from trainers.models.gguf import load_gguf
from trainers.models.moe_transformer import MoeTransformer
from trainers.models.transformer import Transformer
from trainers.tasks.finetune import FineTune
from trainers.tasks.image_classification import ImageClassification
from trainers.tasks.language_model import LanguageModel
from trainers.tasks.moe_language_model import MoeLanguageModel
from trainers.tasks.tabular import Tabular

ADAMW = partial(torch.optim.AdamW, fused=True)


def trained(task: Task, steps: int, rate: float = 1e-2) -> torch.nn.Module:
    trainer = Trainer(task, ADAMW, TrainerOptions(batch_size=16, validation_samples=64))
    trainer.train([rate] * steps)
    return trainer.model.eval().requires_grad_(False)


def test_rows_of_a_table_in_its_own_units() -> None:
    task = Tabular()
    model = trained(task, 60)
    rows, classes = load_breast_cancer(return_X_y=True)
    probabilities = task.predict(model, rows)
    assert probabilities.shape == (569, 2)
    assert np.allclose(probabilities.sum(-1), 1, atol=1e-5)
    assert (probabilities.argmax(-1) == classes).mean() > 0.95
    assert np.array_equal(task.predict(model, pandas.DataFrame(rows)), probabilities)
    part = task.build_data().test[torch.arange(20)][0]
    parts = {tuple(row) for row in model(part).softmax(-1).round(decimals=5).tolist()}
    assert parts <= {tuple(row) for row in torch.tensor(probabilities).round(decimals=5).tolist()}
    with pytest.raises(DataError, match=r"rows of breast_cancer have 30 numbers, and the input has the shape \(4, 5\)"):
        task.predict(model, np.zeros((4, 5)))


def test_a_number_in_its_own_unit() -> None:
    task = Tabular(data="diabetes")
    model = trained(task, 80, 3e-3)
    rows, numbers = load_diabetes(return_X_y=True)
    predicted = task.predict(model, rows)
    assert predicted.shape == numbers.shape
    assert np.corrcoef(predicted, numbers)[0, 1] > 0.6
    assert abs(predicted.mean() - numbers.mean()) < 20  # of about 150


def test_images_as_pictures_and_as_rows() -> None:
    task = ImageClassification()
    model = trained(task, 60)
    digits = load_digits()
    probabilities = task.predict(model, digits.images)
    assert (probabilities.argmax(-1) == digits.target).mean() > 0.9
    assert np.array_equal(task.predict(model, digits.data), probabilities)
    with pytest.raises(DataError, match="images of digits are 8 × 8"):
        task.predict(model, np.zeros((1, 28, 28)))


def test_texts_are_continued_and_bytes_told_what_follows() -> None:
    task = LanguageModel(partial(Transformer, width=32, layers=1, heads=2, key_value_heads=1), context=32)
    model = trained(task, 30)
    prompt = "And God said"
    (text,) = task.predict(model, prompt, max_new_tokens=1)
    (after,) = task.predict(model, [list(prompt.encode())])
    assert after.shape == (256,)
    assert text.encode() == bytes([int(after.argmax())])
    column = pandas.DataFrame({"text": [prompt, "x" * 100]})
    both = task.predict(model, column, max_new_tokens=40)
    assert both[0].startswith(text)
    assert [len(each.encode()) for each in both] == [40, 40]
    assert task.predict(model, [prompt], max_new_tokens=40, temperature=0.7) != both[:1]


def test_experts_that_were_spread_out_answer_from_one_place() -> None:
    model = partial(MoeTransformer, width=32, layers=1, heads=2, key_value_heads=1, experts=4)
    task = MoeLanguageModel(model, context=32)
    answered = task.predict(trained(task, 20), ["And God said"], max_new_tokens=5)
    assert len(answered[0].encode()) >= 5


def test_a_published_model_with_adapters_goes_on_with_its_own_tokens(tmp_path: Path) -> None:
    gguf_files.write(tmp_path / "tiny.gguf", gguf_files.tensors())
    lora = {"rank": 4, "alpha": 8.0, "layers": ["queries", "values", "up"]}
    task = FineTune(partial(load_gguf, tmp_path / "tiny.gguf"), context=32, lora=lora, test_windows=4)
    model = trained(task, 10)
    prompt = "And God said"
    tokens = task.tokenizer.encode(prompt)
    (after,) = task.predict(model, [tokens])
    (text,) = task.predict(model, [prompt], max_new_tokens=1)
    assert text.encode() == task.tokenizer.token_bytes(int(after.argmax()))
    both = task.predict(model, [prompt, "In the beginning"], max_new_tokens=8)
    assert both[0].startswith(text)
    assert len(both) == 2
