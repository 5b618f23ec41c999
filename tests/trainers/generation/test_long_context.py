"""Scores at long context: what is decoded equals the engine's, needles are where they should be, numbers are exact."""

import math

import numpy as np
import pytest
import torch

from trainers.data.text import read_text
from trainers.errors import GenerationError
from trainers.generation.engine import Engine
from trainers.generation.evaluation.attained import Attained
from trainers.generation.evaluation.check import check_long_context
from trainers.generation.evaluation.decoder import Decoder, predictions
from trainers.generation.evaluation.methods import method_named
from trainers.generation.evaluation.needles import hidden_in, ranks
from trainers.generation.evaluation.options import METHODS, LongContextOptions
from trainers.generation.evaluation.prefilled import prefill
from trainers.generation.evaluation.scores import long_context_scores
from trainers.generation.evaluation.text import Text
from trainers.generation.sparse_attention.tactic import Tactic
from trainers.generation.tokenizer import ByteTokenizer
from trainers.models.transformer import Transformer

pytestmark = pytest.mark.usefixtures("one_thread")

KJV = read_text("kjv")[:30_000]
TEXT = Text(ByteTokenizer(), KJV, context=64)
OPTIONS = LongContextOptions("oracle_top_p", context=256, new_tokens=8, needles=1, batch=2)


def sharp_model(layers: int = 2) -> Transformer:
    """Random weights so large that attention goes to few tokens."""
    torch.manual_seed(0)
    model = Transformer(256, width=32, layers=layers, heads=4, key_value_heads=2)
    for parameter in model.parameters():
        parameter.data *= 6 if parameter.dim() == 2 else 1
    return model.eval()


MODEL = sharp_model()


@pytest.mark.parametrize(("name", "part"), zip(METHODS, (7, 64, 512), strict=True))
def test_decoding_equals_the_engines(name, part):
    tokens = TEXT.window(100, 400)
    stored = prefill(MODEL, tokens[:380], part)
    found = predictions(Decoder(MODEL, stored, 20, method_named(name, 0.9, 2)), tokens[380:])
    engine = Engine(MODEL, 400, method=method_named(name, 0.9, 2))
    torch.testing.assert_close(found, engine.predictions(tokens[:380], tokens[380:])[1:], atol=2e-4, rtol=2e-4)


def test_what_is_stored_stays_as_it_was():
    stored = prefill(MODEL, TEXT.window(0, 300))
    before = stored.keys.clone(), stored.values.clone()
    Decoder(MODEL, stored, 4, Tactic(0.5)).step(65)
    assert torch.equal(stored.keys, before[0])
    assert torch.equal(stored.values, before[1])


def test_the_oracle_attains_what_it_is_asked_for():
    attained = Attained(first_layer=1)
    stored = prefill(MODEL, TEXT.window(0, 300))
    decoder = Decoder(MODEL, stored, 20, method_named("oracle_top_p", 0.8, 2), attained)
    predictions(decoder, TEXT.window(300, 20))
    assert len(attained.masses) == 19
    assert np.min(attained.masses) >= 0.8 - 1e-6
    assert 0 < np.max(attained.shares) < 1
    assert 0.8 <= attained.mass_p5 <= attained.mass_mean < 1
    assert (np.array(attained.needed).max(2) <= attained.read).all()


@pytest.mark.parametrize("depth", [0, 0.25, 1])
def test_a_needle_lies_at_its_depth(depth):
    hay = TEXT.window(0, 600)
    needle = hidden_in(hay, ByteTokenizer(), depth, seed=3)
    text, answer = bytes(needle.prompt).decode(), bytes(needle.answer).decode()
    assert len(text) + len(answer) == 600
    begin, question = text.index("\nThe secret"), text[text.rindex("\n") :]
    sentence = f"{question}{answer}.\n"
    assert text[begin:].startswith(sentence)
    assert begin == round(depth * (len(text) - len(sentence) - len(question)))
    assert needle == hidden_in(hay, ByteTokenizer(), depth, seed=3) != hidden_in(hay, ByteTokenizer(), depth, seed=4)


def test_ranks_count_the_likelier_tokens():
    rows = torch.tensor([[0.1, 0.5, 0.4], [0.2, 0.3, 0.5]]).log()
    assert ranks(rows, [1, 0]).tolist() == [1, 3]


def test_scores_of_full_attention_are_the_models_own_and_repeatable():
    metrics, samples = long_context_scores(MODEL, TEXT, OPTIONS, seed=1)
    losses = []
    for begin in (0, (len(KJV) - 255) // 2):
        window = torch.tensor([TEXT.window(begin, 256)])
        with torch.no_grad():
            rows = MODEL(window)[0, -9:-1]
        losses += torch.nn.functional.cross_entropy(rows, window[0, -8:], reduction="none").tolist()
    assert metrics["long_context/perplexity_full"] == pytest.approx(math.exp(np.mean(losses)), rel=1e-3)
    assert metrics["long_context/perplexity"] == pytest.approx(metrics["long_context/perplexity_full"], rel=0.5)
    assert metrics["long_context/mass_mean"] > 0.9
    assert 0 < metrics["long_context/kept_share"] < 1
    assert (metrics["long_context/context"], metrics["long_context/trained_context"]) == (256, 64)
    assert len(samples) == 2
    assert all("extrapolated from 64" in sample for sample in samples)
    again, same_samples = long_context_scores(MODEL, TEXT, OPTIONS, seed=1)
    assert same_samples == samples
    assert {k: v for k, v in again.items() if "second" not in k} == {
        k: v for k, v in metrics.items() if "second" not in k
    }


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"target_mass": 0.0}, "target mass is 0.0"),
        ({"target_mass": 1.5}, "target mass is 1.5"),
        ({"method": "magic"}, "tactic or oracle_top_p or full"),
        ({"context": 2, "needles": 0, "new_tokens": 1}, "context is 2"),
        ({"context": 128}, "needles=0"),
        ({"new_tokens": 1024}, "new_tokens is 1024"),
        ({"prompts": 0}, "prompts is 0"),
        ({"context": 10**6}, "the validation split has"),
        ({"batch": 10**9}, "of memory are free"),
    ],
)
def test_what_cannot_be_met_is_one_sentence(change, named):
    model = {"width": 96, "layers": 2, "heads": 3, "key_value_heads": 1}
    task = {"_target_": "trainers.tasks.language_model.LanguageModel", "data": "kjv", "context": 64, "model": model}
    with pytest.raises(GenerationError, match=named) as raised:
        check_long_context(LongContextOptions(**change), task)
    assert "\n" not in str(raised.value)


def test_a_task_without_text_is_refused():
    with pytest.raises(GenerationError, match="no text"):
        check_long_context(LongContextOptions(), {"_target_": "trainers.tasks.tabular.Tabular"})
