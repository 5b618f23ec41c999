"""One pass through the model: what it needs, formed before it runs, and what it tells."""

from collections.abc import Callable, Iterator
from collections.abc import Sequence as Listed
from dataclasses import dataclass
from itertools import accumulate
from threading import Event

import torch
from torch import Tensor

from trainers.generation.attention import PassAttention
from trainers.generation.board import Board
from trainers.generation.kv_cache import KVCache
from trainers.generation.scheduler import Part
from trainers.generation.sequence import Sequence
from trainers.generation.sparse_attention.method import LayerStore, Method
from trainers.models.transformer import Transformer

Choose = Callable[[Tensor, Listed[Sequence]], Tensor]
"""What follows each sequence, (sequences,), by its row of logits (sequences, vocabulary)."""


@dataclass(frozen=True)
class FormedPass:
    """inputs: where on the board its tokens are; positions: of the same tokens in their sequences.

    told: sequences whose next token it tells; rows: of these in the pass; outputs: where on the board they belong.
    prepared: sequences that begin to decode by a sparse method afterwards, with their first slot and tokens stored.
    """

    inputs: Tensor
    positions: Tensor
    attention: PassAttention
    told: list[Sequence]
    rows: list[int]
    outputs: Tensor
    prepared: list[tuple[Sequence, int, int]]


@dataclass(frozen=True)
class Outcome:
    """The token that follows each sequence: tokens (sequences,), chosen by logits (sequences, vocabulary)."""

    sequences: list[Sequence]
    tokens: Tensor
    logits: Tensor

    def told(self) -> Iterator[tuple[Sequence, int, float | None]]:
        """Each sequence with its token, and the log-probability of that if any request wants one."""
        wanted = [sequence.request.log_probabilities for sequence in self.sequences]
        found = self._log_probabilities() if any(wanted) else [None] * len(wanted)
        yield from zip(self.sequences, self.tokens.tolist(), found, strict=True)

    def _log_probabilities(self) -> list[float]:
        found: list[float] = self.logits.log_softmax(-1).gather(1, self.tokens[:, None])[:, 0].tolist()
        return found


class StoppedError(Exception):
    """The pass was given up, as nobody waits for it any more."""


class Passes:
    """Forms passes for a scheduler's parts and runs them, in the same order; both need not happen in one thread.

    stopped: once it is set, a pass that runs ends with StoppedError at its next layer.
    """

    def __init__(self, model: Transformer, cache: KVCache, board: Board, method: Method | None, choose: Choose) -> None:
        self._model, self._cache, self._board = model, cache, board
        self._method, self._choose = method, choose
        self.stopped = Event()

    def form(self, parts: Listed[Part]) -> FormedPass:
        positions = [position for part in parts for position in part.positions]
        ends = accumulate(len(part.positions) for part in parts)
        told = [part for part in parts if part.complete]
        return FormedPass(
            inputs=self._board.places(parts),
            positions=torch.tensor(positions, device=self._cache.keys.device),
            attention=PassAttention(self._cache, parts, keep_windows=self._method is not None),
            told=[part.sequence for part in told],
            rows=[end - 1 for end, part in zip(ends, parts, strict=True) if part.complete],
            outputs=self._board.places_after(told),
            prepared=self._prepared(told),
        )

    @torch.no_grad()
    def run(self, formed: FormedPass) -> Outcome:
        def attend(layer: int, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            if self.stopped.is_set():
                raise StoppedError
            return formed.attention(layer, queries, keys, values)

        tokens = self._board.read(formed.inputs)
        hidden = self._model.hidden(tokens[None], formed.positions, attend)[0]
        for sequence, first, stored in formed.prepared:
            self._make_readers(sequence, first, stored)
        logits = self._model.logits(hidden[formed.rows])
        chosen = self._choose(logits, formed.told) if formed.told else tokens[:0]
        self._board.write(formed.outputs, chosen)
        return Outcome(formed.told, chosen, logits)

    def _prepared(self, told: Listed[Part]) -> list[tuple[Sequence, int, int]]:
        """Those whose prompt is stored by a pass, and who go on: with their first slot and the tokens stored."""
        if self._method is None:
            return []
        begun = [part for part in told if not part.decoding and not part.sequence.over]
        return [(part.sequence, part.sequence.table.places(0, 1)[0].start, part.positions.stop) for part in begun]

    def _make_readers(self, sequence: Sequence, first: int, stored: int) -> None:
        assert self._method is not None
        for layer, window in sorted(sequence.windows.items()):
            store = LayerStore(self._cache.keys[layer], self._cache.values[layer], first, stored)
            sequence.stores.append(store)
            sequence.readers.append(self._method.reader(layer, store, window))
        sequence.windows.clear()
