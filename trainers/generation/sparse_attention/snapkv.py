"""Chosen once, when the prompt is stored: what the prompt's last queries attend to.

SnapKV (arXiv 2404.14469), PyramidKV (2406.02069), which gives lower layers more, and Ada-KV (2407.11550), where the
heads of a layer share their budget. What is generated is read besides.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import avg_pool1d, max_pool1d

from trainers.generation.runs import Runs
from trainers.generation.sparse_attention.method import LayerStore, Method, Reader
from trainers.generation.sparse_attention.selection import Floats, Mask, keys_of, lowest, runs_of
from trainers.generation.sparse_attention.settings import check_budget


class SnapKV(Method):
    """The `window` last tokens of the prompt, and those budget - window before that their queries attend to most.

    kernel: how many neighbours a token's score is the highest of, an odd number.
    """

    def __init__(self, budget: int, window: int = 32, kernel: int = 7) -> None:
        check_budget(budget, window + 1)
        self._budget, self._window, self._kernel = budget, window, kernel

    def reader(self, layer: int, store: LayerStore, queries: Tensor) -> Reader:
        scores = window_scores(store, queries[:, -self._window :])
        if not scores.shape[1]:  # the window is all of the prompt
            return ChosenReader(store, scores.cpu().numpy() > 0)
        return ChosenReader(store, self._choose(layer, self._pooled(scores)))

    def _pooled(self, scores: Tensor) -> Tensor:
        return max_pool1d(scores, self._kernel, stride=1, padding=self._kernel // 2)

    def _choose(self, layer: int, scores: Tensor) -> Mask:
        """Which of the scored tokens (key_value_heads, tokens) are read."""
        return lowest(-scores, self._budget - self._window)


class PyramidKV(SnapKV):
    """SnapKV with budgets that fall from layer to layer on a line, and are `budget` on average; scores are averaged.

    beta: the last layer's budget is 1 / beta of the average.
    """

    def __init__(self, budget: int, layers: int, window: int = 64, kernel: int = 5, beta: float = 20) -> None:
        super().__init__(budget, window, kernel)
        self._layers, self._beta = layers, beta

    def _pooled(self, scores: Tensor) -> Tensor:
        return avg_pool1d(scores, self._kernel, stride=1, padding=self._kernel // 2)

    def _choose(self, layer: int, scores: Tensor) -> Mask:
        average = self._budget - self._window
        last = average / self._beta
        first = 2 * average - last
        return lowest(-scores, round(first + (last - first) * layer / max(1, self._layers - 1)))


class AdaKV(SnapKV):
    """SnapKV whose heads compete for one budget a layer; a head has at least `floor` of an equal share."""

    def __init__(self, budget: int, window: int = 32, kernel: int = 7, floor: float = 0.2) -> None:
        super().__init__(budget, window, kernel)
        self._floor = floor

    def _choose(self, layer: int, scores: Tensor) -> Mask:
        share = self._budget - self._window
        certain = lowest(-scores, int(self._floor * share))
        rest = scores.masked_fill(torch.from_numpy(certain).to(scores.device), -torch.inf).reshape(1, -1)
        competed = lowest(-rest, len(scores) * (share - int(self._floor * share)))
        return certain | competed.reshape(scores.shape)


class ChosenReader(Reader):
    """Reads the chosen of the prompt's first tokens (key_value_heads, tokens) and all after those."""

    def __init__(self, store: LayerStore, chosen: Mask) -> None:
        self._store, self._chosen = store, chosen

    def select(self, queries: Floats) -> Runs:
        after = self._store.length - self._chosen.shape[1]
        return runs_of(np.pad(self._chosen, ((0, 0), (0, after)), constant_values=True), self._store.first)


def window_scores(store: LayerStore, queries: Tensor) -> Tensor:
    """What the prompt's last queries (heads, window, width) attend to before the window, summed over queries and group.

    (key_value_heads, prompt - window). Causal: a query sees no later key.
    """
    keys = keys_of(store)
    heads, length, width = keys.shape
    window = queries.shape[1]
    scores = queries.float().reshape(heads, -1, window, width) @ keys[:, None].transpose(2, 3) / width**0.5
    later = torch.ones(window, length, dtype=torch.bool, device=keys.device).triu(length - window + 1)
    attended: Tensor = scores.masked_fill(later, -torch.inf).softmax(-1).sum((1, 2))
    return attended[:, : length - window]
