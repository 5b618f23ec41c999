"""Full attention: a step reads every stored token."""

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from trainers.generation.runs import Runs
from trainers.generation.sparse_attention.method import LayerStore, Method, Reader


class Full(Method):
    """Reads all."""

    def reader(self, layer: int, store: LayerStore, queries: Tensor) -> Reader:
        return FullReader(store)


class FullReader(Reader):
    """One run for each key-value head: the whole sequence."""

    def __init__(self, store: LayerStore) -> None:
        self._store = store

    def select(self, queries: NDArray[np.float32]) -> Runs:
        heads = self._store.keys.shape[0]
        return Runs(np.full(heads, self._store.first), np.full(heads, self._store.length), np.arange(heads + 1))
