"""Tactic as published and with its parts exchanged, for ablations: what order, estimate and sinks each contribute.

Scores of all tokens are computed, so this says nothing of time.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from trainers.generation.runs import Runs
from trainers.generation.sparse_attention.cluster_index import ClusterIndex, ClusterSettings
from trainers.generation.sparse_attention.full import FullReader
from trainers.generation.sparse_attention.method import LayerStore, Method, Reader
from trainers.generation.sparse_attention.selection import Floats, keys_of, runs_of
from trainers.generation.sparse_attention.settings import check_target
from trainers.generation.sparse_attention.tail_estimates import Doubles, exact, fewest_in_order, fitted, stratified

ESTIMATES: dict[str, Callable[[Doubles, int, np.random.Generator], Doubles]] = {
    "fit": fitted,
    "stratified": stratified,
    "exact": exact,
}
PLAIN = ClusterSettings(iterations=10, sinks=0, recent=1)


@dataclass(frozen=True)
class PublishedTactic(Method):
    """estimate: "fit", "stratified" or "exact", which knows all. order: of tokens, by "clusters" or the "oracle".

    exact_head: share of tokens, the first in the order, whose scores are known. A head reads the tokens that it needs,
    to the token, and its group the union.
    """

    target: float = 0.9
    estimate: str = "fit"
    order: str = "clusters"
    clusters: ClusterSettings = field(default=PLAIN)
    exact_head: float = 0.02

    def __post_init__(self) -> None:
        check_target(self.target)

    def reader(self, layer: int, store: LayerStore, queries: Tensor) -> Reader:
        return _OrderReader(self, layer, store)


class _OrderReader(Reader):
    def __init__(self, method: PublishedTactic, layer: int, store: LayerStore) -> None:
        self._method, self._store = method, store
        self._index = ClusterIndex(store, method.clusters, patience=layer)
        self._random = np.random.default_rng((method.clusters.seed, layer))
        self._everything = FullReader(store)

    def select(self, queries: Floats) -> Runs:
        self._index.update()
        if not self._index.means.shape[1]:
            return self._everything.select(queries)
        keys = keys_of(self._store).cpu().numpy()
        heads, length, width = keys.shape
        by_group = queries.reshape(heads, -1, width) / math.sqrt(width)
        chosen = np.zeros((heads, by_group.shape[1], length), np.bool_)
        for row, head in np.ndindex(chosen.shape[:2]):
            chosen[row, head] = self._needed(row, by_group[row, head], keys[row])
        self.needed = chosen.sum(-1)
        return runs_of(np.any(chosen, 1), self._store.first)

    def _needed(self, row: int, query: Floats, keys: Floats) -> np.ndarray:
        """The tokens (length,) that one head reads."""
        scores = (keys @ query).astype(np.float64)
        weights = np.exp(scores - scores.max())
        first, begin, _, recent, end = (bound - self._store.first for bound in self._index.bounds)
        always = np.concatenate([np.arange(first, begin), np.arange(recent, end)])
        order = np.concatenate([always, self._order(row, query, weights, begin, recent)])
        head = len(always) + int(self._method.exact_head * len(keys))
        estimated = ESTIMATES[self._method.estimate](weights[order], head, self._random)
        chosen = np.zeros(len(keys), np.bool_)
        chosen[order[: max(len(always), fewest_in_order(estimated, self._method.target))]] = True
        return chosen

    def _order(self, row: int, query: Floats, weights: Doubles, begin: int, end: int) -> np.ndarray:
        """Tokens begin … end - 1: those that came after clustering first, then clusters from the likeliest on."""
        if self._method.order == "oracle":
            return begin + np.argsort(-weights[begin:end], kind="stable")
        index = self._index
        likeliest = np.argsort(-(index.means[row] @ query), kind="stable")
        starts, sizes = index.starts[row, likeliest] - self._store.first, index.sizes[row, likeliest]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        late = np.arange(index.tail - self._store.first, end)
        return np.concatenate([late, np.repeat(starts, sizes) + within])
