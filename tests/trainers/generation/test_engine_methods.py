"""The engine decodes by a method: it hands it what is stored and the last queries, and attends to what it selects."""

import numpy as np
import pytest
import torch

from trainers.generation.engine import Engine
from trainers.generation.requests import Request
from trainers.generation.runs import Runs
from trainers.generation.sparse_attention.full import Full, FullReader
from trainers.generation.sparse_attention.method import LayerStore, Method, Reader
from trainers.models.transformer import Transformer, rotate, rotations

pytestmark = pytest.mark.usefixtures("one_thread")
CONTEXT, HEADS, KEY_VALUE_HEADS, LAYERS = 200, 4, 2, 3


def small_transformer() -> Transformer:
    torch.manual_seed(2)
    model = Transformer(64, width=32, layers=LAYERS, heads=HEADS, key_value_heads=KEY_VALUE_HEADS)
    for parameter in model.parameters():
        parameter.data *= 6 if parameter.dim() == 2 else 1
    return model.eval()


MODEL = small_transformer()
PROMPTS = [
    tuple(torch.randint(64, (length,), generator=torch.Generator().manual_seed(9)).tolist()) for length in (5, 90, 31)
]
REQUESTS = [Request(prompt, 25) for prompt in PROMPTS]


class Reordering(Method):
    """Reads all, token by token, of a store whose prompt it has turned around; the first layer it leaves alone."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, int, torch.Tensor]] = []

    def reader(self, layer: int, store: LayerStore, queries: torch.Tensor) -> Reader:
        self.seen.append((layer, store.length, queries))
        if layer == 0:
            return FullReader(store)
        prompt = slice(store.first, store.first + store.length)
        store.keys[:, prompt] = store.keys[:, prompt].flip(1)
        store.values[:, prompt] = store.values[:, prompt].flip(1)
        return TokenByToken(store)


class TokenByToken(Reader):
    def __init__(self, store: LayerStore, last: int | None = None) -> None:
        self._store, self._last = store, last

    def select(self, queries: np.ndarray) -> Runs:
        assert queries.shape == (HEADS, 8)
        length = min(self._store.length, self._last or self._store.length)
        slots = self._store.first + self._store.length - 1 - np.arange(length)
        each = [slots] * KEY_VALUE_HEADS
        return Runs(np.concatenate(each), np.ones(KEY_VALUE_HEADS * length, np.int64), np.arange(3) * length)


class Newest(Method):
    """Reads the last `count` tokens alone."""

    def __init__(self, count: int) -> None:
        self._count = count

    def reader(self, layer: int, store: LayerStore, queries: torch.Tensor) -> Reader:
        return TokenByToken(store, self._count)


@pytest.mark.parametrize("options", [{"batch": 1}, {"batch": 3}, {"batch": 2, "pass_tokens": 20}])
@pytest.mark.parametrize("method", [Full, Reordering])
def test_a_method_that_reads_all_gives_the_tokens_of_full_attention(method, options):
    expected = Engine(MODEL, CONTEXT).generate(REQUESTS)
    assert Engine(MODEL, CONTEXT, method=method(), **options).generate(REQUESTS) == expected


@pytest.mark.parametrize("pass_tokens", [20, 512])
def test_a_method_sees_each_layer_once_with_the_last_queries_of_the_prompt(pass_tokens):
    method = Reordering()
    prompt = PROMPTS[1]
    Engine(MODEL, CONTEXT, method=method, pass_tokens=pass_tokens).generate([Request(prompt, 3)])
    assert [(layer, length) for layer, length, _ in method.seen] == [(layer, len(prompt)) for layer in range(LAYERS)]
    hidden = MODEL.blocks[0].attention_norm(MODEL.embedding(torch.tensor(prompt)))
    by_head = MODEL.blocks[0].attention.queries(hidden).view(-1, HEADS, 8).transpose(0, 1)
    queries = rotate(by_head, rotations(torch.arange(len(prompt)), 8))
    torch.testing.assert_close(method.seen[0][2], queries[:, -64:], atol=1e-5, rtol=1e-4)


def test_only_what_is_selected_is_attended_to():
    """With the newest token alone, attention returns its value, whatever the query is."""
    prompt, continuation = PROMPTS[1], (3, 9, 27)
    found = Engine(MODEL, CONTEXT, method=Newest(1)).predictions(prompt, continuation)
    with torch.no_grad():
        alone = MODEL(torch.tensor([[3], [9]]))[:, 0].log_softmax(-1)  # a lone token attends to itself as well
    torch.testing.assert_close(found[1:], alone, atol=1e-4, rtol=1e-4)


def test_the_newest_tokens_are_the_same_ones_whatever_the_batch():
    one, many = (Engine(MODEL, CONTEXT, batch=batch, method=Newest(20)) for batch in (1, 3))
    assert one.generate(REQUESTS) == many.generate(REQUESTS) != Engine(MODEL, CONTEXT).generate(REQUESTS)


def test_prompts_wait_for_consecutive_room():
    crowded = Engine(MODEL, CONTEXT, cache_bytes=8 * 16 * 2 * LAYERS * KEY_VALUE_HEADS * 8 * 4, method=Reordering())
    assert crowded.generate(REQUESTS * 3) == Engine(MODEL, CONTEXT).generate(REQUESTS) * 3
