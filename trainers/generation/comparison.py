"""Ways to attend side by side on one text: each decodes the same tokens after the same prompt, as if it had said them.

A prompt is stored once. Then every method gets a copy of the cache and decodes the tokens that follow; what it reads is
judged by the exact softmax of its own queries, and what it predicts by full attention's predictions.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import kl_div, scaled_dot_product_attention

from trainers.generation.kernels import attend_runs
from trainers.generation.sparse_attention.dense_first import DenseFirst
from trainers.generation.sparse_attention.full import Full
from trainers.generation.sparse_attention.h2o import H2O
from trainers.generation.sparse_attention.method import LayerStore, Method
from trainers.generation.sparse_attention.oracle import OracleTopK
from trainers.generation.sparse_attention.quest import Quest
from trainers.generation.sparse_attention.selection import Floats, attained
from trainers.generation.sparse_attention.snapkv import AdaKV, PyramidKV, SnapKV
from trainers.generation.sparse_attention.streaming import StreamingLLM
from trainers.models.transformer import Transformer

WINDOW = 64
"""Queries of the prompt's last tokens that a method is given."""


@dataclass(frozen=True)
class Prompt:
    """Keys and values (layers, key_value_heads, length, width) and its last queries (layers, heads, window, width)."""

    keys: Tensor
    values: Tensor
    windows: Tensor


@dataclass(frozen=True)
class Row:
    """One line of a comparison: what layers that aren't always dense read, and what the model predicted.

    read: mean tokens that a key-value head reads; needed: that a head would read by itself, where a method knows.
    mass_p5: 5th percentile over heads and steps. kl: mean divergence from full attention's predictions, nats;
    perplexity: of the text; top1_agreement: how often the likeliest token is full attention's. seconds: a step's
    choosing and attending, in the time of this thread.
    """

    name: str
    read: float
    needed: float | None
    mass_mean: float
    mass_p5: float
    kl: float
    perplexity: float
    top1_agreement: float
    seconds: float


@torch.no_grad()
def store_prompt(model: Transformer, tokens: Sequence[int]) -> Prompt:
    """Run the model over a prompt, each layer once."""
    keys, values, windows = [], [], []

    def attend(_: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        keys.append(key[0])
        values.append(value[0])
        windows.append(query[0, :, -WINDOW:].clone())
        return scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)

    model.hidden(torch.tensor([list(tokens)]), attend=attend)
    return Prompt(torch.stack(keys), torch.stack(values), torch.stack(windows))


def compare(
    model: Transformer, prompt: Prompt, following: Sequence[int], methods: Mapping[str, Method], dense_layers: int = 2
) -> Iterator[Row]:
    """A row for full attention and then for each method, whose layers before `dense_layers` read all.

    following: at least two tokens; each but the last is put in, and what follows it is predicted.
    """
    expected: Tensor | None = None
    for name, method in {"full": Full(), **methods}.items():
        watched = _Watched(prompt, len(following), DenseFirst(method, dense_layers), dense_layers)
        predicted = _decode(model, watched, prompt.keys.shape[2], following)
        expected = predicted if expected is None else expected
        yield _row(name, watched, predicted, expected, following)


def rivals(budget: int, layers: int) -> dict[str, Method]:
    """Methods of a fixed budget, tokens a key-value head."""
    return {
        "oracle top-k": OracleTopK(budget),
        "Quest": Quest(budget),
        "Quest + sinks and recent": Quest(budget, sinks=16, recent=64),
        "SnapKV": SnapKV(budget),
        "PyramidKV": PyramidKV(budget, layers),
        "Ada-KV": AdaKV(budget),
        "StreamingLLM": StreamingLLM(budget),
        "H2O": H2O(budget),
    }


@torch.no_grad()
def _decode(model: Transformer, watched: "_Watched", length: int, following: Sequence[int]) -> Tensor:
    """Log-probabilities (steps, vocabulary) of what follows each token but the last."""
    logits = []
    for position, token in enumerate(following[:-1], length):
        hidden = model.hidden(torch.tensor([[token]]), torch.tensor([position]), watched)
        logits.append(model.logits(hidden)[0, 0])
    return torch.stack(logits).log_softmax(-1)


class _Watched:
    """The `Attend` of one method, with a cache of its own; notes what layers from `dense_layers` on read."""

    def __init__(self, prompt: Prompt, steps: int, method: Method, dense_layers: int) -> None:
        layers, heads, length, width = prompt.keys.shape
        room = torch.zeros(layers, heads, steps, width)
        keys, values = torch.cat([prompt.keys, room], 2), torch.cat([prompt.values, room], 2)
        self._dense_layers = dense_layers
        self._stores = [LayerStore(keys[layer], values[layer], 0, length) for layer in range(layers)]
        self._readers = [method.reader(layer, store, prompt.windows[layer]) for layer, store in enumerate(self._stores)]
        self.mass: list[Floats] = []
        self.read: list[NDArray[np.int64]] = []
        self.needed: list[NDArray[np.int64]] = []
        self.seconds = 0.0

    def __call__(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        store, reader, query = self._stores[layer], self._readers[layer], queries[:, :, 0].numpy()
        store.keys[:, store.length], store.values[:, store.length] = keys[0, :, 0], values[0, :, 0]
        store.length += 1
        began = time.thread_time()
        runs = reader.select(query[0])
        attended = attend_runs(query, store.keys, store.values, runs)
        self.seconds += time.thread_time() - began
        if layer >= self._dense_layers:
            self.mass.append(attained(store, query[0], runs))
            self.read.append(runs.tokens())
            if reader.needed is not None:
                self.needed.append(reader.needed)
        return torch.from_numpy(attended)[:, :, None]


def _row(name: str, watched: _Watched, predicted: Tensor, expected: Tensor, following: Sequence[int]) -> Row:
    told = predicted.gather(1, torch.tensor(following[1:])[:, None])
    return Row(
        name=name,
        read=float(np.mean(watched.read)),
        needed=float(np.mean(watched.needed)) if watched.needed else None,
        mass_mean=float(np.mean(watched.mass)),
        mass_p5=float(np.percentile(watched.mass, 5)),
        kl=float(kl_div(predicted, expected, reduction="batchmean", log_target=True)),
        perplexity=float((-told.mean()).exp()),
        top1_agreement=float((predicted.argmax(-1) == expected.argmax(-1)).float().mean()),
        seconds=watched.seconds / len(predicted),
    )
