"""Where the clusters of one sequence lie in one layer; tokens that come later are clustered when enough are there."""

from dataclasses import dataclass

import numpy as np

from trainers.generation.sparse_attention.clustering import cluster
from trainers.generation.sparse_attention.method import LayerStore


@dataclass(frozen=True)
class ClusterSettings:
    """size: keys a cluster on average. iterations: of Lloyd's algorithm. stretch: tokens that are clustered together.

    sinks: first tokens, and recent: last ones, that stay where they are. seed: of the first centres.
    """

    size: int = 32
    iterations: int = 4
    stretch: int = 2048
    sinks: int = 16
    recent: int = 64
    seed: int = 0


class ClusterIndex:
    """Slots of a sequence: sinks, clusters in order, and from `tail` on tokens in the order they came in.

    means: (key_value_heads, clusters, width); starts and sizes: (key_value_heads, clusters). `patience`: by how many
    tokens clustering waits longer than it must, so that layers take turns and no step has to do it for all of them.
    """

    def __init__(self, store: LayerStore, settings: ClusterSettings, patience: int = 0) -> None:
        self._store, self._settings, self._patience = store, settings, patience
        heads, _, width = store.keys.shape
        self.tail = store.first + settings.sinks
        self.means = np.zeros((heads, 0, width), np.float32)
        self.starts = self.sizes = np.zeros((heads, 0), np.int64)
        if self.tail < self.end - settings.recent:
            self._append(self.end - settings.recent)

    @property
    def end(self) -> int:
        return self._store.first + self._store.length

    @property
    def bounds(self) -> tuple[int, int, int, int, int]:
        """The slots at which the sequence, its clusters, its tail and its recent tokens begin, and its end."""
        first, settings = self._store.first, self._settings
        return first, first + settings.sinks, self.tail, self.end - settings.recent, self.end

    def update(self) -> None:
        """Cluster the oldest tokens of the tail if that is due."""
        if self.end - self.tail >= self._settings.recent + self._settings.stretch + self._patience:
            self._append(self.tail + self._settings.stretch)

    def _append(self, end: int) -> None:
        """Cluster the slots from the tail to `end`."""
        stretch = slice(self.tail, end)
        keys, values = self._store.keys[:, stretch], self._store.values[:, stretch]
        settings = self._settings
        new = cluster(keys, values, settings.size, settings.iterations, settings.seed)
        starts = self.tail + np.cumsum(new.sizes, axis=1) - new.sizes
        self.means = np.concatenate([self.means, new.means], 1)
        self.starts = np.concatenate([self.starts, starts], 1)
        self.sizes = np.concatenate([self.sizes, new.sizes], 1)
        self.tail = end
