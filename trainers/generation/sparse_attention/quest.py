"""Quest (arXiv 2406.10774): pages whose keys might score highest, by a bound from each channel's least and most."""

import torch
from torch import Tensor

from trainers.generation.runs import Runs
from trainers.generation.sparse_attention.method import LayerStore, Method, Reader
from trainers.generation.sparse_attention.selection import Floats, best_places, keys_of, lowest, runs_of
from trainers.generation.sparse_attention.settings import check_budget

LEAST_PAGES = 3


class Quest(Method):
    """The best budget / page pages of a group's heads in turn, at least 3 a key-value head, among them the newest.

    sinks, recent: tokens at either end whose pages come first; none as published.
    """

    def __init__(self, budget: int, page: int = 16, sinks: int = 0, recent: int = 0) -> None:
        check_budget(budget, LEAST_PAGES * page)
        self._pages, self._page, self._ends = budget // page, page, (sinks, recent)

    def reader(self, layer: int, store: LayerStore, queries: Tensor) -> Reader:
        return _PageReader(store, self._pages, self._page, self._ends)


class _PageReader(Reader):
    """Keeps the least and the most of each channel (key_value_heads, pages, width) as tokens come."""

    def __init__(self, store: LayerStore, pages: int, page: int, ends: tuple[int, int]) -> None:
        self._store, self._pages, self._page, self._ends = store, pages, page, ends
        self._seen = 0
        empty = store.keys[:, :0].float()
        self._least, self._most = empty, empty

    def select(self, queries: Floats) -> Runs:
        self._update()
        heads, _, width = self._least.shape
        by_group = torch.from_numpy(queries).to(self._least).reshape(heads, -1, width)
        most = by_group.clamp(min=0) @ self._most.transpose(1, 2)
        least = by_group.clamp(max=0) @ self._least.transpose(1, 2)
        places = best_places(most + least)
        sinks, recent = self._ends
        places[:, : -(-sinks // self._page)] = -1
        places[:, (self._store.length - max(recent, 1)) // self._page :] = -1
        places[:, -1] = -2  # whatever the budget
        pages = lowest(places, self._pages)
        chosen = pages.repeat(self._page, axis=1)[:, : self._store.length]
        return runs_of(chosen, self._store.first)

    def _update(self) -> None:
        """Bounds of the pages that tokens came to."""
        begin = self._seen // self._page
        keys = keys_of(self._store)[:, begin * self._page :]
        parts = keys.split(self._page, dim=1)
        self._least = torch.cat([self._least[:, :begin], *(part.amin(1, keepdim=True) for part in parts)], 1)
        self._most = torch.cat([self._most[:, :begin], *(part.amax(1, keepdim=True) for part in parts)], 1)
        self._seen = self._store.length
