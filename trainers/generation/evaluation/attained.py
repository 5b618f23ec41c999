"""How much of the attention mass a method attains with how many tokens, against the exact softmax of every step."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trainers.generation.runs import Runs
from trainers.generation.sparse_attention.method import LayerStore, Reader
from trainers.generation.sparse_attention.selection import Floats, attained


@dataclass
class Attained:
    """An observer of a decoder, of the layers from `first_layer` on.

    masses: by query head, of every layer and step. read: tokens of each key-value head; shares: the same of those that
    are stored. needed: tokens that each query head would have read by itself, where a method knows.
    """

    first_layer: int
    masses: list[Floats] = field(default_factory=list)
    read: list[NDArray[np.int64]] = field(default_factory=list)
    shares: list[NDArray[np.float64]] = field(default_factory=list)
    needed: list[NDArray[np.int64]] = field(default_factory=list)

    def __call__(self, layer: int, store: LayerStore, reader: Reader, queries: Floats, runs: Runs) -> None:
        if layer < self.first_layer:
            return
        self.masses.append(attained(store, queries, runs))
        self.read.append(runs.tokens())
        self.shares.append(runs.tokens() / store.length)
        if reader.needed is not None:
            self.needed.append(reader.needed)

    @property
    def mass_mean(self) -> float:
        return float(np.mean(self.masses))

    @property
    def mass_p5(self) -> float:
        """What 95 of 100 heads and steps attain."""
        return float(np.percentile(self.masses, 5))
