"""A published model through the engine: the tokens of a plain loop, and faster in batches than one at a time."""

import pydoc_data.topics

import pytest
import torch

from trainers.generation.cache_plan import CachePlan, available_memory
from trainers.generation.engine import Engine
from trainers.generation.requests import Request
from trainers.generation.throughput import throughput
from trainers.generation.tiers.tiers import Tiers
from trainers.models.gguf import SMOLLM2, LoadedModel, load_gguf, read_llama

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]


@pytest.fixture(scope="module")
def smollm2() -> LoadedModel:
    return load_gguf(SMOLLM2)


def prompts(smollm2: LoadedModel, count: int) -> list[tuple[int, ...]]:
    """Beginnings of real texts, 16 tokens and more long."""
    texts = [text for text in pydoc_data.topics.topics.values() if len(text) > 1000][:count]
    return [tuple(smollm2.tokenizer.encode(text)[: 16 + 3 * number]) for number, text in enumerate(texts)]


def test_greedy_tokens_are_those_of_a_plain_loop(smollm2):
    requests = [Request(prompt, 8) for prompt in prompts(smollm2, 4)]
    engine = Engine(smollm2.model, 256, token_bytes=smollm2.tokenizer.token_bytes)
    for request, completion in zip(requests, engine.generate(requests), strict=True):
        tokens = list(request.prompt)
        for token in completion.tokens:
            with torch.no_grad():
                row = smollm2.model(torch.tensor([tokens]))[0, -1]
            assert row.max() - row[token] < 1e-3  # the likeliest, or as likely but for rounding
            tokens.append(token)
        assert completion.text.decode(errors="replace") == smollm2.tokenizer.decode(completion.tokens)


def test_a_batch_of_16_is_faster_than_one_at_a_time_and_says_the_same(smollm2):
    """Four times faster, as measured; others may use the machine at the same time."""
    result = throughput(smollm2.model, 256, [Request(prompt, 8) for prompt in prompts(smollm2, 16)], rounds=1)
    assert result.agreeing >= 15 / 16
    assert result.speedup > 1.5


def test_forming_ahead_and_afterwards_say_the_same(smollm2):
    requests = [Request(prompt, 8, stop_strings=(b".",)) for prompt in prompts(smollm2, 6)]
    ahead, afterwards = (
        Engine(smollm2.model, 256, batch=4, token_bytes=smollm2.tokenizer.token_bytes, formation=formation)
        for formation in ("asynchronous", "synchronous")
    )
    served, expected = ahead.generate(requests), afterwards.generate(requests)
    assert served == expected
    assert ahead.counts.unseen == sum(len(completion.tokens) < 8 for completion in expected) > 0


def test_a_turn_goes_on_from_the_disk(smollm2, tmp_path):
    tokens = tuple(smollm2.tokenizer.encode(pydoc_data.topics.topics["class"])[:300])
    first, second = (Request(tokens[:end], 4, conversation="help") for end in (250, 300))
    with Tiers(0, tmp_path, 10**9) as tiers:
        Engine(smollm2.model, 512, tiers=tiers).generate([first])
    engine = Engine(smollm2.model, 512, tiers=Tiers(0, tmp_path, 10**9))
    (completion,) = engine.generate([second])
    assert completion.restored == 250
    assert completion.tokens == Engine(smollm2.model, 512).generate([Request(second.prompt, 4)])[0].tokens


def test_the_cache_of_a_file_is_stated_from_its_header():
    llama = read_llama(SMOLLM2)
    plan = CachePlan(llama.layers, llama.key_value_heads, llama.head_width, sequences=4, context=llama.context)
    assert plan.statement() == "KV cache: 4 sequences × 8192 tokens × 46.1 kB = 1.51 GB"
    plan.check(available_memory())
