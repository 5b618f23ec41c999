"""StreamingLLM (arXiv 2309.17453): the first tokens, which hold much mass of any query, and the last ones."""

import numpy as np
from torch import Tensor

from trainers.generation.runs import Runs
from trainers.generation.sparse_attention.method import LayerStore, Method, Reader
from trainers.generation.sparse_attention.selection import Floats, keep_ends, runs_of
from trainers.generation.sparse_attention.settings import check_budget


class StreamingLLM(Method):
    """`sinks` first and budget - sinks last tokens."""

    def __init__(self, budget: int, sinks: int = 4) -> None:
        check_budget(budget, sinks + 1)
        self._budget, self._sinks = budget, sinks

    def reader(self, layer: int, store: LayerStore, queries: Tensor) -> Reader:
        return _EndsReader(store, self._sinks, self._budget - self._sinks)


class _EndsReader(Reader):
    def __init__(self, store: LayerStore, sinks: int, recent: int) -> None:
        self._store, self._sinks, self._recent = store, sinks, recent

    def select(self, queries: Floats) -> Runs:
        nothing = np.zeros((self._store.keys.shape[0], self._store.length), np.bool_)
        return runs_of(keep_ends(nothing, self._sinks, self._recent), self._store.first)
