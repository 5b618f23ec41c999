"""Tactic on a published model: with nearly all of the mass, greedy decoding says what full attention says."""

import argparse
import inspect
from pydoc_data import topics

import pytest

from trainers.data.text import read_text
from trainers.generation.engine import Engine
from trainers.generation.evaluation.needles import hidden_in
from trainers.generation.requests import Request
from trainers.generation.sparse_attention.dense_first import DenseFirst
from trainers.generation.sparse_attention.method import Method
from trainers.generation.sparse_attention.tactic import Tactic
from trainers.models.gguf import load_gguf

PROMPT, NEW = 1200, 16
TEXTS = (
    read_text("kjv").tobytes()[:20_000].decode(),
    "\n".join(topics.topics.values())[:20_000],
    inspect.getsource(argparse)[:20_000],
)


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_greedy_output_with_nearly_all_of_the_mass_is_that_of_full_attention():
    loaded = load_gguf("smollm2")
    hay = [loaded.tokenizer.encode(text)[:PROMPT] for text in TEXTS]
    needles = [
        hidden_in(each, loaded.tokenizer, depth, seed=5) for each, depth in zip(hay, (0.2, 0.5, 0.8), strict=True)
    ]
    requests = [Request(tuple(prompt), NEW) for prompt in (*(needle.prompt for needle in needles), *hay)]

    def said(method: Method | None) -> list[list[int]]:
        engine = Engine(loaded.model, PROMPT + NEW, batch=len(requests), method=method)
        return [completion.tokens for completion in engine.generate(requests)]

    tactic = DenseFirst(Tactic(0.99, dense_share=1.0))  # never falls back to reading all
    output = said(None)
    for tokens, needle in zip(output, needles, strict=False):
        assert tokens[: len(needle.answer)] == needle.answer
    assert said(tactic) == output
