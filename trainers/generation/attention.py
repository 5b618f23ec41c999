"""Attention of one pass: each decoding sequence reads what its method selects, each part of a prompt all before it."""

from collections.abc import Sequence as Listed

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from trainers.generation.kernels import attend_runs
from trainers.generation.kv_cache import KVCache
from trainers.generation.runs import Runs
from trainers.generation.scheduler import Part
from trainers.generation.sparse_attention.full import FullReader

WINDOW = 64
"""Queries of a prompt's last tokens that are kept for a method to judge by."""


class PassAttention:
    """The `Attend` of one pass over tokens (1, time): those of decoding sequences, then those of parts of prompts.

    What does not depend on the layer (slots, runs of full attention, masks) is worked out once, before the pass runs.
    """

    def __init__(self, cache: KVCache, parts: Listed[Part], keep_windows: bool) -> None:
        self._cache = cache
        device = cache.keys.device
        decoding = [part for part in parts if part.decoding]
        self._decoding = [part.sequence for part in decoding]
        chunks = [part for part in parts if not part.decoding]
        begins = len(self._decoding) + np.cumsum([0, *(len(chunk.positions) for chunk in chunks)])
        self._chunks = [
            _Chunk(chunk, int(at), device, keep_windows) for chunk, at in zip(chunks, begins[:-1], strict=True)
        ]
        self._slots = torch.tensor([slot for part in parts for slot in _slots(part)], device=device)
        self._everything = _all_of(decoding, cache.keys.shape[1])

    def __call__(self, layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        self._cache.write(layer, self._slots, keys[0], values[0])
        attended = torch.empty_like(queries)
        if self._decoding:
            decoding = len(self._decoding)
            attended[0, :, :decoding] = self._decode(layer, queries[0, :, :decoding])
        for chunk in self._chunks:
            attended[0, :, chunk.rows] = chunk.attend(layer, queries[0, :, chunk.rows], self._cache)
        return attended

    def _decode(self, layer: int, queries: Tensor) -> Tensor:
        """For queries (heads, sequences, head_width), one of each decoding sequence; the same shape."""
        for sequence in self._decoding:
            for store in sequence.stores[layer : layer + 1]:
                store.length += 1
        by_sequence = queries.transpose(0, 1).contiguous().cpu().numpy()
        runs = self._selected(layer, by_sequence)
        attended = attend_runs(by_sequence, self._cache.keys[layer], self._cache.values[layer], runs)
        return torch.from_numpy(attended).to(queries.device).transpose(0, 1)

    def _selected(self, layer: int, queries: NDArray[np.float32]) -> Runs:
        readers = [sequence.readers[layer] for sequence in self._decoding if sequence.readers]
        if all(isinstance(reader, FullReader) for reader in readers):
            return self._everything
        return Runs.joined([reader.select(query) for reader, query in zip(readers, queries, strict=True)])


class _Chunk:
    """A part of a prompt: rows `rows` of the pass, which attend to all tokens of their sequence up to themselves."""

    def __init__(self, part: Part, at: int, device: torch.device, keep_window: bool) -> None:
        self._sequence, self._keep_window = part.sequence, keep_window
        self.rows = slice(at, at + len(part.positions))
        self._places = part.sequence.table.places(0, part.positions.stop)
        self._mask = _causal(part.positions, device) if part.positions.start else None

    def attend(self, layer: int, queries: Tensor, cache: KVCache) -> Tensor:
        if self._keep_window:
            before = self._sequence.windows.get(layer, queries[:, :0])
            self._sequence.windows[layer] = torch.cat([before, queries], 1)[:, -WINDOW:]
        keys, values = cache.read(layer, self._places)
        return scaled_dot_product_attention(
            queries[None], keys[None], values[None], self._mask, is_causal=self._mask is None, enable_gqa=True
        )[0]


def _causal(positions: range, device: torch.device) -> Tensor:
    """What is added to the scores of tokens 0 … last at these positions: -inf for those that come later.

    In floats, because the CPU would make floats of booleans in every layer again.
    """
    mask = torch.full((len(positions), positions.stop), -torch.inf, device=device)
    return mask.triu_(positions.start + 1)


def _slots(part: Part) -> list[int]:
    places = part.sequence.table.places(part.positions.start, part.positions.stop)
    return [slot for place in places for slot in place]


def _all_of(parts: Listed[Part], heads: int) -> Runs:
    """Every token of every part's sequence, the newest included, for each of `heads` heads."""
    places = [part.sequence.table.places(0, part.positions.stop) for part in parts]
    runs = [run for each in places for run in heads * each]
    return Runs(
        np.array([run.start for run in runs], np.int64),
        np.array([len(run) for run in runs], np.int64),
        np.cumsum([0, *(len(each) for each in places for _ in range(heads))]),
    )
