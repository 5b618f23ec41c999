"""H2O (arXiv 2306.14048): tokens that much attention went to so far, and the last; what is dropped is gone."""

import numpy as np
from torch import Tensor

from trainers.generation.runs import Runs
from trainers.generation.sparse_attention.method import LayerStore, Method, Reader
from trainers.generation.sparse_attention.selection import Floats, of_step, runs_of
from trainers.generation.sparse_attention.settings import check_budget
from trainers.generation.sparse_attention.snapkv import window_scores


class H2O(Method):
    """budget / 2 heavy tokens and budget / 2 recent ones.

    Attention is summed from the prompt's last queries on (the window that a method gets) and not from its beginning.
    """

    def __init__(self, budget: int) -> None:
        check_budget(budget, 2)
        self._budget = budget

    def reader(self, layer: int, store: LayerStore, queries: Tensor) -> Reader:
        return _HeavyReader(store, self._budget, window_scores(store, queries).cpu().numpy())


class _HeavyReader(Reader):
    """Sums of attention (key_value_heads, tokens) so far; of dropped tokens they are -1."""

    def __init__(self, store: LayerStore, budget: int, sums: Floats) -> None:
        self._store, self._budget, self._sums = store, budget, sums

    def select(self, queries: Floats) -> Runs:
        self._grow()
        self._drop()
        kept = self._sums >= 0
        attended = of_step(self._store, queries).cpu().numpy() * kept[:, None]
        self._sums += np.where(kept, (attended / attended.sum(-1, keepdims=True)).sum(1), 0)
        return runs_of(kept, self._store.first)

    def _grow(self) -> None:
        new = self._store.length - self._sums.shape[1]
        self._sums = np.pad(self._sums, ((0, 0), (0, new)))

    def _drop(self) -> None:
        """Keep the heaviest of those that are not recent."""
        recent = self._budget // 2
        old = self._sums[:, : max(0, self._sums.shape[1] - recent)]
        lightest = np.argsort(-old, axis=1, kind="stable")[:, self._budget - recent :]
        np.put_along_axis(old, lightest, np.float32(-1), axis=1)
