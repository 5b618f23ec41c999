"""The first layers, whose attention is spread over all tokens, read all; the others by a method."""

from dataclasses import dataclass

from torch import Tensor

from trainers.generation.sparse_attention.full import FullReader
from trainers.generation.sparse_attention.method import LayerStore, Method, Reader


@dataclass(frozen=True)
class DenseFirst(Method):
    """Layers 0 … layers - 1 read all."""

    method: Method
    layers: int = 2

    def reader(self, layer: int, store: LayerStore, queries: Tensor) -> Reader:
        return FullReader(store) if layer < self.layers else self.method.reader(layer, store, queries)
