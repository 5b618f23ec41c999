"""The engine produces what a plain loop over the whole context produces, whatever else it serves and in which room."""

from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainers.errors import GenerationError
from trainers.generation.cache_plan import PAGE
from trainers.generation.engine import Engine
from trainers.generation.requests import Request
from trainers.generation.tokenizer import ByteTokenizer
from trainers.models.transformer import Transformer

pytestmark = pytest.mark.usefixtures("one_thread")
CONTEXT = 160
TOKEN_BYTES = 2 * 2 * 2 * 8 * 4  # keys and values of 2 layers, 2 heads of width 8, in float32


def sharp_transformer(dropout: float = 0.0) -> Transformer:
    """A small one whose likeliest tokens stand out, so that rounding doesn't change them."""
    torch.manual_seed(3)
    model = Transformer(256, width=32, layers=2, heads=4, key_value_heads=2, dropout=dropout)
    for parameter in model.parameters():
        parameter.data *= 6 if parameter.dim() == 2 else 1
    return model


MODEL = sharp_transformer()


@cache
@torch.no_grad()
def plainly(prompt: tuple[int, ...], count: int) -> tuple[list[int], list[float]]:
    """Greedy tokens and their log-probabilities by a fresh pass over everything for each."""
    tokens, log_probabilities = list(prompt), []
    for _ in range(count):
        row = MODEL(torch.tensor([tokens]))[0, -1].log_softmax(-1)
        first, second = row.topk(2).values
        assert first - second > 1e-3, "a tie, which rounding may break"
        tokens.append(int(row.argmax()))
        log_probabilities.append(float(first))
    return tokens[len(prompt) :], log_probabilities


def random_prompt(length: int) -> tuple[int, ...]:
    return tuple(torch.randint(256, (length,), generator=torch.Generator().manual_seed(length)).tolist())


LENGTHS = (1, 3, 40, 17, 90, 5, 64, 16)
REQUESTS = [Request(random_prompt(length), 30, log_probabilities=True) for length in LENGTHS]


def expected(number: int) -> list[int]:
    return plainly(REQUESTS[number].prompt, 30)[0]


@pytest.mark.parametrize(
    "options",
    [
        {"batch": 1},
        {"batch": 16},
        {"batch": 3, "pass_tokens": 7},
        {"batch": 16, "pass_tokens": 50},
        {"batch": 8, "cache_bytes": 8 * PAGE * TOKEN_BYTES},  # room for the longest alone
    ],
)
def test_greedy_tokens_and_their_log_probabilities_are_those_of_a_plain_loop(options):
    engine = Engine(MODEL, CONTEXT, **options)
    for request, completion in zip(REQUESTS, engine.generate(REQUESTS), strict=True):
        tokens, log_probabilities = plainly(request.prompt, 30)
        assert completion.tokens == tokens
        assert completion.log_probabilities == pytest.approx(log_probabilities, abs=1e-4)
        assert completion.reason == "length"


@settings(max_examples=8)
@given(st.permutations(range(len(LENGTHS))), st.integers(1, 8), st.integers(1, 200), st.integers(8, 40))
def test_the_order_of_requests_and_the_room_do_not_matter(order, batch, pass_tokens, pages):
    engine = Engine(MODEL, CONTEXT, batch, cache_bytes=pages * PAGE * TOKEN_BYTES, pass_tokens=pass_tokens)
    completions = engine.generate([REQUESTS[number] for number in order])
    assert [completion.tokens for completion in completions] == [expected(number) for number in order]


def test_who_is_preempted_ends_with_the_same_tokens():
    requests = [Request(random_prompt(length), 300) for length in (30, 31)]
    alone, crowded = (Engine(MODEL, 400, cache_bytes=pages * PAGE * TOKEN_BYTES) for pages in (100, 24))
    assert crowded.generate(requests) == alone.generate(requests)


def test_tokens_come_one_by_one_and_the_last_brings_the_completion():
    engine = Engine(MODEL, CONTEXT, batch=2)
    seen: dict[int, list[int]] = {}
    for produced in engine.stream(REQUESTS[:4]):
        seen.setdefault(produced.request, []).append(produced.token)
        if produced.completion:
            assert produced.completion.tokens == seen[produced.request]
    assert [seen[number] for number in range(4)] == [expected(number) for number in range(4)]


def test_a_stream_that_is_abandoned_gives_its_room_back():
    engine = Engine(MODEL, CONTEXT, batch=4, cache_bytes=12 * PAGE * TOKEN_BYTES)
    stream = engine.stream(REQUESTS[:6])
    next(stream)
    del stream
    assert engine.generate(REQUESTS[4:5])[0].tokens == expected(4)


def test_a_stream_that_is_left_waiting_with_the_whole_cache_is_named():
    engine = Engine(MODEL, CONTEXT, batch=4, cache_bytes=8 * PAGE * TOKEN_BYTES)
    waiting = engine.stream(REQUESTS[4:5])
    next(waiting)
    with pytest.raises(RuntimeError, match="Another stream of this engine holds the cache"):
        engine.generate(REQUESTS[4:5])
    assert len(list(waiting)) == 29


def test_what_is_drawn_depends_on_the_seed_and_not_on_the_company():
    drawn = Request(random_prompt(20), 40, temperature=1.0, top_p=0.9, seed=5)
    other = Request(random_prompt(20), 40, temperature=1.0, top_p=0.9, seed=6)
    engine = Engine(MODEL, CONTEXT, batch=8)
    alone = engine.generate([drawn])[0]
    crowd = engine.generate([*REQUESTS, other, drawn])
    assert crowd[-1].tokens == alone.tokens != crowd[-2].tokens
    assert [completion.tokens for completion in crowd[:-2]] == [expected(number) for number in range(len(LENGTHS))]


def test_a_stop_token_ends_it_and_is_the_last():
    tokens = expected(2)
    stop = tokens[7]
    request = Request(REQUESTS[2].prompt, 30, stop_tokens=frozenset({stop}))
    completion = Engine(MODEL, CONTEXT, token_bytes=ByteTokenizer().token_bytes).generate([request])[0]
    assert completion.tokens == tokens[: tokens.index(stop) + 1]
    assert completion.text == bytes(completion.tokens[:-1])
    assert completion.reason == "stop_token"


def test_a_stop_string_is_found_where_tokens_cut_it_and_the_text_ends_before_it():
    tokens = expected(2)
    double = {token: bytes([token, token ^ 1]) for token in range(256)}  # every token stands for two bytes
    text = b"".join(double[token] for token in tokens)
    stop = text[9:14]
    request = Request(REQUESTS[2].prompt, 30, stop_strings=(b"never to be found", stop))
    completion = Engine(MODEL, CONTEXT, token_bytes=double.__getitem__).generate([request])[0]
    assert completion.reason == "stop_string"
    assert completion.text == text[: text.index(stop)]
    assert completion.tokens == tokens[: (text.index(stop) + len(stop) + 1) // 2]


def test_the_context_ends_it_one_token_after_it_is_full():
    prompt = random_prompt(CONTEXT - 3)
    completion = Engine(MODEL, CONTEXT).generate([Request(prompt, 30)])[0]
    assert completion.tokens == plainly(prompt, 4)[0]
    assert completion.reason == "context"


@pytest.mark.parametrize("pass_tokens", [9, 512])
def test_a_continuation_is_scored_as_the_model_sees_it_at_once(pass_tokens):
    prompt, continuation = random_prompt(33), random_prompt(20)
    engine = Engine(MODEL, CONTEXT, pass_tokens=pass_tokens)
    with torch.no_grad():
        rows = MODEL(torch.tensor([prompt + continuation]))[0, len(prompt) - 1 : -1].log_softmax(-1)
    torch.testing.assert_close(engine.predictions(prompt, continuation), rows, atol=2e-4, rtol=1e-4)
    scores = rows[torch.arange(20), torch.tensor(continuation)]
    torch.testing.assert_close(engine.score(prompt, continuation), scores, atol=2e-4, rtol=1e-4)


def test_the_model_is_in_evaluation_mode_meanwhile_and_as_before_afterwards():
    model = sharp_transformer(dropout=0.5).train()
    model.blocks[0].eval()
    before = [module.training for module in model.modules()]
    assert Engine(model, CONTEXT).generate(REQUESTS[:1])[0].tokens == expected(0)
    assert [module.training for module in model.modules()] == before
    assert not any(parameter.grad_fn for parameter in model.parameters())


def test_no_requests_are_served_at_once():
    assert Engine(MODEL, CONTEXT).generate([]) == []


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (Request(()), "Prompt 2 is empty; give at least one token."),
        (Request((1,) * 161), "Prompt 2 has 161 tokens, the context holds 160; shorten it."),
        (Request((256,)), "Prompt 2 holds a token outside 0 … 255; encode it with the model's own tokenizer."),
        (Request((-1,)), "Prompt 2 holds a token outside 0 … 255; encode it with the model's own tokenizer."),
        (Request((1,), 0), "Prompt 2 asks for max_new_tokens = 0; it must be at least 1."),
        (Request((1,), temperature=-0.1), "Prompt 2 has temperature = -0.1; it must be 0 or a positive number."),
        (Request((1,), temperature=float("nan")), "Prompt 2 has temperature = nan; it must be 0 or a positive number."),
        (Request((1,), top_p=0.0), "Prompt 2 has top_p = 0.0; it must be above 0 and at most 1."),
        (Request((1,), stop_strings=(b"",)), "Prompt 2 has an empty stop string; leave it out."),
    ],
)
def test_a_request_that_cannot_be_served_is_refused_in_one_sentence_before_any_token(request_, sentence):
    engine = Engine(MODEL, CONTEXT, token_bytes=ByteTokenizer().token_bytes)
    with pytest.raises(GenerationError) as refusal:
        engine.stream([REQUESTS[0], request_])
    assert str(refusal.value) == sentence


def test_a_request_that_the_cache_can_never_hold_is_refused():
    sentence = "Prompt 1 needs 109 tokens of KV cache, which holds 96; raise its limit or lower max_new_tokens."
    with pytest.raises(GenerationError, match=sentence):
        Engine(MODEL, CONTEXT, cache_bytes=6 * PAGE * TOKEN_BYTES).generate([Request((1,) * 60, 50)])


def test_a_cache_above_the_memory_there_is_refused():
    with pytest.raises(GenerationError, match="of memory are free; lower the batch or the context"):
        Engine(MODEL, 10**9, batch=10**6)
