"""Passes that are formed ahead change no token, give all room back, and end at once with whatever goes wrong."""

from threading import enumerate as threads
from time import monotonic, sleep

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainers.errors import GenerationError
from trainers.generation.cache_plan import PAGE
from trainers.generation.engine import Engine
from trainers.generation.requests import Request
from trainers.generation.sparse_attention.h2o import H2O
from trainers.generation.sparse_attention.streaming import StreamingLLM
from trainers.generation.sparse_attention.tactic import Tactic
from trainers.generation.tiers.tiers import Tiers
from trainers.generation.tokenizer import ByteTokenizer
from trainers.models.transformer import Transformer

pytestmark = pytest.mark.usefixtures("one_thread")
CONTEXT = 120
TOKEN_BYTES = 2 * 2 * 2 * 8 * 4  # keys and values of 2 layers, 2 heads of width 8, in float32
TEXT = ByteTokenizer().token_bytes


def sharp_transformer(layers: int = 2) -> Transformer:
    """Its likeliest tokens stand out, so that rounding doesn't change them; it repeats itself, so that it stops."""
    torch.manual_seed(5)
    model = Transformer(24, width=32, layers=layers, heads=4, key_value_heads=2)
    for parameter in model.parameters():
        parameter.data *= 6 if parameter.dim() == 2 else 1
    return model.eval()


MODEL = sharp_transformer()
REQUEST = st.builds(
    Request,
    prompt=st.lists(st.integers(0, 23), min_size=1, max_size=100).map(tuple),
    max_new_tokens=st.integers(1, 20),
    temperature=st.sampled_from([0.0, 0.0, 0.8]),
    seed=st.integers(0, 9),
    stop_tokens=st.frozensets(st.integers(0, 23), max_size=3),
    stop_strings=st.lists(st.binary(min_size=1, max_size=2).map(lambda text: bytes(b % 24 for b in text))).map(tuple),
)


def engine(formation: str, **options) -> Engine:
    return Engine(MODEL, CONTEXT, token_bytes=TEXT, formation=formation, **options)


@settings(max_examples=12)
@given(
    st.lists(REQUEST, max_size=5),
    st.integers(1, 5),
    st.integers(4, 150),
    st.integers(8, 16),
    st.none() | st.integers(0, 200),
)
def test_completions_are_those_of_one_at_a_time_and_all_room_comes_back(requests, batch, pass_tokens, pages, kept):
    crowded = {"batch": batch, "pass_tokens": pass_tokens, "cache_bytes": pages * PAGE * TOKEN_BYTES}
    expected = engine("synchronous", batch=1).generate(requests)
    for formation in ("asynchronous", "synchronous"):
        tiers = None if kept is None else Tiers(kept * TOKEN_BYTES)
        serving = engine(formation, tiers=tiers, **crowded)
        assert serving.generate(requests) == expected
        assert serving._cache.pages.free == serving._cache.pages.count


@pytest.mark.parametrize("method", [StreamingLLM(24), H2O(24), Tactic(0.8, dense_share=1.0)])
def test_sparse_methods_read_the_same(method):
    random = torch.Generator().manual_seed(1)
    prompts = [tuple(torch.randint(24, (length,), generator=random).tolist()) for length in (90, 9, 60, 1)]
    requests = [Request(prompt, 20, stop_tokens=frozenset({number})) for number, prompt in enumerate(prompts)]
    ahead, afterwards = (
        Engine(MODEL, CONTEXT, batch=2, pass_tokens=32, method=method, formation=formation)
        for formation in ("asynchronous", "synchronous")
    )
    assert ahead.generate(requests) == afterwards.generate(requests)
    assert ahead._cache.pages.free == ahead._cache.pages.count


def test_an_end_is_noticed_one_token_late_and_the_token_is_never_seen():
    plain = Request((3, 1, 4), 40)
    tokens = engine("synchronous").generate([plain])[0].tokens
    stop = tokens[4]
    request = Request((3, 1, 4), 40, stop_tokens=frozenset({stop}))
    ahead, after = engine("asynchronous"), engine("synchronous")
    seen = []
    (completion,) = ahead.generate([request], lambda produced: seen.append(produced.token))
    assert [completion] == after.generate([request])
    assert seen == completion.tokens == tokens[: tokens.index(stop) + 1]
    assert (ahead.counts.unseen, after.counts.unseen) == (1, 0)
    assert ahead.counts.passes == after.counts.passes + 1
    ahead.generate([plain])
    assert ahead.counts.unseen == 1, "what ends by length is known to end"


def test_every_token_goes_through_the_model_once_in_full_passes():
    """Prompts of 480 tokens in all, 9 tokens more each: passes of 50 while prompts wait, then the last one's tokens."""
    counted = engine("asynchronous", batch=8, pass_tokens=50)
    counted.generate([Request((number,) * 60, 10) for number in range(8)])
    assert counted.counts.tokens == 8 * 69
    assert counted.counts.passes <= 8 * 69 // 50 + 10


class ModelError(Exception):
    """What a layer may run into."""


@pytest.mark.parametrize("formation", ["asynchronous", "synchronous"])
def test_what_a_layer_raises_ends_it_and_the_engine_serves_on(formation):
    model, requests = sharp_transformer(), [Request((1, 2, 3), 20), Request((4,), 30)]
    serving = Engine(model, CONTEXT, batch=2, formation=formation)
    expected = serving.generate(requests)

    def fail(*_: object) -> None:
        raise ModelError("a layer failed")

    seen = []
    hooks = []

    def progress(produced: object) -> None:
        seen.append(produced)
        if len(seen) == 10:
            hooks.append(model.blocks[1].register_forward_hook(fail))

    with pytest.raises(ModelError, match="a layer failed"):
        serving.generate(requests, progress)
    assert len(seen) < 20
    assert serving._cache.pages.free == serving._cache.pages.count
    hooks[0].remove()
    assert serving.generate(requests) == expected


def test_what_progress_raises_ends_it_though_a_pass_is_long():
    """With the hooks a pass takes 10 s; its next layer ends it."""
    model = sharp_transformer(layers=20)
    serving, request = Engine(model, CONTEXT), Request((1, 2, 3), 20)
    expected = serving.generate([request])
    hooks, begun = [], []

    def progress(_: object) -> None:
        hooks.extend(block.register_forward_hook(lambda *_: sleep(0.5)) for block in model.blocks)
        begun.append(monotonic())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        serving.generate([request], progress)
    assert monotonic() - begun[0] < 5
    for hook in hooks:
        hook.remove()
    assert serving.generate([request]) == expected


def test_an_engine_that_is_gone_leaves_no_thread():
    before = set(threads())
    serving = engine("asynchronous")
    serving.generate([Request((1,), 3)])
    (thread,) = set(threads()) - before
    del serving
    thread.join(20)
    assert not thread.is_alive()


def test_formation_must_be_one_of_two():
    with pytest.raises(GenerationError, match="Formation is 'eager', and must be 'asynchronous' or 'synchronous'"):
        engine("eager")
