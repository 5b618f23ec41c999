"""The fewest tokens, known from exact scores: lower bounds that no system reaches, for comparison."""

import numpy as np
import torch
from torch import Tensor

from trainers.generation.runs import Runs
from trainers.generation.sparse_attention.method import LayerStore, Method, Reader
from trainers.generation.sparse_attention.selection import Floats, best_places, keep_ends, lowest, of_step, runs_of
from trainers.generation.sparse_attention.settings import check_budget, check_target


class OracleTopP(Method):
    """For each head the fewest tokens that hold `target` of its attention mass, and for a group the union of them."""

    def __init__(self, target: float) -> None:
        check_target(target)
        self._target = target

    def reader(self, layer: int, store: LayerStore, queries: Tensor) -> Reader:
        return _TopPReader(store, self._target)


class OracleTopK(Method):
    """The heaviest tokens of a group's heads in turn, `budget` a key-value head."""

    def __init__(self, budget: int) -> None:
        check_budget(budget, 1)
        self._budget = budget

    def reader(self, layer: int, store: LayerStore, queries: Tensor) -> Reader:
        return _TopKReader(store, self._budget)


class _TopPReader(Reader):
    def __init__(self, store: LayerStore, target: float) -> None:
        self._store, self._target = store, target

    def select(self, queries: Floats) -> Runs:
        chosen = fewest(of_step(self._store, queries).double(), self._target).cpu().numpy()
        self.needed = chosen.sum(-1)
        return runs_of(keep_ends(np.any(chosen, 1), 0, 1), self._store.first)


class _TopKReader(Reader):
    def __init__(self, store: LayerStore, budget: int) -> None:
        self._store, self._budget = store, budget

    def select(self, queries: Floats) -> Runs:
        places = best_places(of_step(self._store, queries))
        places[:, -1] = -1  # the newest token is always read
        return runs_of(lowest(places, self._budget), self._store.first)


def fewest(mass: Tensor, target: float) -> Tensor:
    """The smallest sets of items that hold `target` of mass (…, items), which sums to 1, as a mask of that shape."""
    sorted_mass, order = mass.sort(dim=-1, descending=True, stable=True)
    before = sorted_mass.cumsum(-1) - sorted_mass
    return torch.zeros_like(mass, dtype=torch.bool).scatter_(-1, order, before < target)
