"""Fine-tuning: the text as tokens, what is scored, learning by adapters and in full, and what is refused beforehand."""

import math
from functools import partial

import gguf_files
import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from trainers import Trainer, TrainerOptions
from trainers.data.check import check_data
from trainers.data.text import SPLITS, read_text
from trainers.data.tokens import split_tokens
from trainers.errors import DataError
from trainers.generation.tokenizer import ByteTokenizer
from trainers.models.gguf import load_gguf
from trainers.tasks.finetune import FineTune

LORA = {"rank": 4, "alpha": 8.0, "layers": ["queries", "values", "up"]}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finetune")
    gguf_files.write(folder / "tiny.gguf", gguf_files.tensors())
    verses = read_text("kjv").tobytes().decode().splitlines()[:400]
    (folder / "text.txt").write_text("\n".join(f"{number} – {verse}" for number, verse in enumerate(verses)))
    return folder


def task(place, **changes) -> FineTune:
    model = partial(load_gguf, place / "tiny.gguf")
    return FineTune(**{"model": model, "data": str(place / "text.txt"), "context": 32, "lora": LORA, **changes})


def configuration(place, **changes):
    return {
        "_target_": "trainers.tasks.finetune.FineTune",
        "model": {"path": str(place / "tiny.gguf")},
        "data": str(place / "text.txt"),
        "context": 32,
        "lora": LORA,
        "test_windows": 4,
        **changes,
    }


def test_splits_share_no_text_and_hold_all_of_it(place):
    text = read_text(str(place / "text.txt"))
    splits = split_tokens(text, ByteTokenizer(), 32, "text.txt", *SPLITS)
    sizes = {name: sum(len(part.encode()) for part in split.texts) for name, split in splits.items()}
    assert len(text) - 400 < sum(sizes.values()) <= len(text)  # cut characters and the odd end are lost
    assert sizes["train"] == pytest.approx(18 * sizes["validation"], rel=0.02)
    whole = text.tobytes().decode()
    assert all(part in whole for split in splits.values() for part in split.texts)


def test_windows_follow_each_other_without_a_gap(place):
    split = split_tokens(read_text(str(place / "text.txt")), ByteTokenizer(), 32, "text.txt", "validation")[
        "validation"
    ]
    assert split.starts.tolist() == list(range(0, len(split.tokens) - 32, 32))
    assert bytes(split.tokens.astype(np.uint8)) == "".join(split.texts).encode()
    assert split.tokens_a_byte == 1


@pytest.mark.parametrize("lora", [LORA, None])
def test_training_lowers_the_loss_from_where_the_model_stood(lora, place):
    run = Trainer(task(place, lora=lora), torch.optim.AdamW, TrainerOptions(batch_size=8))
    before = run.validate()
    untrained, _ = run.evaluate()
    run.train([0.01] * 30)
    after, (scores, _) = run.validate(), run.evaluate()
    assert after["loss"] < 0.8 * before["loss"]
    assert scores["bits_per_byte"] < scores["bits_per_byte_before"]
    assert untrained["bits_per_byte"] == pytest.approx(scores["bits_per_byte_before"])


def test_scores_are_what_they_say(place):
    made = task(place)
    run = Trainer(made, torch.optim.AdamW, TrainerOptions(batch_size=5))
    split = made.held_out
    model = load_gguf(place / "tiny.gguf").model
    with torch.no_grad():
        losses = []
        for start in split.starts:
            window = torch.from_numpy(split.tokens[start : start + 33]).long()
            losses.append(cross_entropy(model(window[None, :-1])[0], window[1:]).item())
    metrics = run.validate()
    assert metrics["loss"] == pytest.approx(np.mean(losses), rel=1e-4)
    size = sum(len(text.encode()) for text in split.texts)
    assert metrics["bits_per_byte"] == pytest.approx(np.mean(losses) / math.log(2) * len(split.tokens) / size, rel=1e-4)
    chosen = [losses[place * len(losses) // 8] for place in range(8)]
    assert run.evaluate()[0]["perplexity"] == pytest.approx(math.exp(np.mean(chosen)), rel=1e-3)


def test_the_test_can_be_limited_to_some_windows(place):
    whole, few = (task(place, test_windows=wanted).build_data() for wanted in (None, 6))
    assert len(few.test) == 6
    assert len(few.validation) == len(whole.validation)
    places = [len(whole.test) * place // 6 for place in range(6)]
    assert torch.equal(few.test[torch.arange(6)], whole.test[torch.tensor(places)])


def test_the_tokenizer_and_the_held_out_text_are_at_hand(place):
    made = task(place)
    made.build_data()
    assert made.tokenizer.decode(made.tokenizer.encode("In the beginning")) == "In the beginning"
    assert made.tokenizer.encode_all(made.held_out.texts) == [
        made.tokenizer.encode(text) for text in made.held_out.texts
    ]
    assert len(made.held_out.texts) == 5


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"context": 0}, "task.context is 0; tiny takes 1 to 256 tokens"),
        ({"context": 257}, "task.context is 257"),
        ({"lora": {**LORA, "rank": 0}}, "task.lora.rank is 0"),
        ({"test_windows": 0}, "task.test_windows is 0"),
        ({"data": "nowhere.txt"}, "nowhere.txt cannot be read"),
        ({"model": {"path": "nowhere.gguf"}}, "nowhere.gguf cannot be read"),
    ],
)
def test_what_cannot_work_is_refused_beforehand(changes, sentence, place):
    check_data(configuration(place))
    with pytest.raises(DataError, match=sentence):
        check_data(configuration(place, **changes))


def test_a_text_shorter_than_a_window_is_refused(place):
    (place / "short.txt").write_text("In the beginning God created the heaven and the earth. " * 20)
    with pytest.raises(DataError, match=r"task\.context=200 needs 201: give more text or a shorter context"):
        check_data(configuration(place, data=str(place / "short.txt"), context=200))
    (place / "shorter.txt").write_text("In the beginning")
    with pytest.raises(DataError, match="holds 16 bytes, too few"):
        check_data(configuration(place, data=str(place / "shorter.txt")))
