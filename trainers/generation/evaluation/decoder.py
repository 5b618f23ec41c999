"""Decoding from a stored prompt by one method, with every layer's reads seen by whoever measures them."""

from collections.abc import Callable, Sequence
from time import perf_counter

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers.generation.evaluation.prefilled import Prefilled
from trainers.generation.kernels import attend_runs
from trainers.generation.runs import Runs
from trainers.generation.sparse_attention.method import LayerStore, Method, Reader
from trainers.models.transformer import Transformer

Floats = NDArray[np.float32]
Kernel = Callable[[Floats, Tensor, Tensor, Runs], Floats]
Observe = Callable[[int, LayerStore, Reader, Floats, Runs], None]
"""Told of layer, store, reader, queries (heads, head_width) and what is read for them."""


class Decoder:
    """Goes on from a copy of what is stored, by up to `room` tokens.

    observe: sees what each layer reads in each step, in time that is not counted. kernel: attends to what is read.
    preparing: seconds until the method could read; seconds: of each step since, and of these `attending` in all went
    into choosing what is read and attending to it, by `clock`.
    """

    def __init__(
        self,
        model: Transformer,
        stored: Prefilled,
        room: int,
        method: Method,
        observe: Observe | None = None,
        kernel: Kernel = attend_runs,
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        self._model, self._position = model, stored.tokens
        self._observe, self._kernel, self._clock = observe, kernel, clock
        keys, values = (_with_room(each, room) for each in (stored.keys, stored.values))
        self._stores = [LayerStore(*pair, 0, stored.tokens) for pair in zip(keys, values, strict=True)]
        begun = clock()
        self._readers = [
            method.reader(layer, store, window.float())
            for layer, (store, window) in enumerate(zip(self._stores, stored.windows, strict=True))
        ]
        self.preparing = clock() - begun
        self.seconds: list[float] = []
        self.attending = 0.0

    @torch.no_grad()
    def step(self, token: int) -> Tensor:
        """Logits (vocabulary,) of what follows one more token."""
        device = self._model.embedding.weight.device
        begun, self._observing = self._clock(), 0.0
        tokens, positions = torch.tensor([[token]], device=device), torch.tensor([self._position], device=device)
        logits = self._model.logits(self._model.hidden(tokens, positions, self._attend)[0, 0])
        self.seconds.append(self._clock() - begun - self._observing)
        self._position += 1
        return logits

    def _attend(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        store, reader = self._stores[layer], self._readers[layer]
        store.keys[:, store.length], store.values[:, store.length] = keys[0, :, 0], values[0, :, 0]
        store.length += 1
        asked = queries[0, :, 0].cpu().numpy()
        begun = self._clock()
        runs = reader.select(asked)
        attended = self._kernel(asked[None], store.keys, store.values, runs)
        self.attending += self._clock() - begun
        self._show(layer, store, reader, asked, runs)
        return torch.from_numpy(attended).to(queries.device)[:, :, None]

    def _show(self, layer: int, store: LayerStore, reader: Reader, queries: Floats, runs: Runs) -> None:
        if self._observe is not None:
            begun = self._clock()
            self._observe(layer, store, reader, queries, runs)
            self._observing += self._clock() - begun


def _with_room(stored: Tensor, tokens: int) -> Tensor:
    """A copy in float32 of (layers, key_value_heads, stored tokens, head_width) with room for more tokens."""
    layers, heads, length, width = stored.shape
    grown = torch.empty(layers, heads, length + tokens, width, device=stored.device)
    grown[:, :, :length] = stored
    return grown


def predictions(decoder: Decoder, following: Sequence[int]) -> Tensor:
    """Log-probabilities (len(following) - 1, vocabulary) of what follows each token but the last, all put in."""
    return torch.stack([decoder.step(token) for token in following[:-1]]).log_softmax(-1)
