"""What methods share: scores of stored keys, rankings a group of heads agrees on, and runs of what is chosen."""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainers.generation.runs import Runs
from trainers.generation.sparse_attention.method import LayerStore

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]


def runs_of(chosen: Mask, first: int) -> Runs:
    """The runs of chosen tokens (key_value_heads, length) of a sequence that begins at slot `first`."""
    changes = np.diff(np.pad(chosen, ((0, 0), (1, 1))).astype(np.int8), axis=1)
    heads, begins = np.nonzero(changes == 1)
    ends = np.nonzero(changes == -1)[1]
    counts = np.bincount(heads, minlength=len(chosen))
    return Runs(begins + first, ends - begins, np.concatenate([[0], np.cumsum(counts)]))


def mask_of(runs: Runs, store: LayerStore) -> Mask:
    """Which of the sequence's slots (rows, length) runs read."""
    changes = np.zeros((runs.rows, store.length + 1), np.int64)
    rows, begins = np.repeat(np.arange(runs.rows), np.diff(runs.offsets)), runs.starts - store.first
    np.add.at(changes, (rows, begins), 1)
    np.add.at(changes, (rows, begins + runs.lengths), -1)
    return changes.cumsum(1)[:, :-1] > 0


def keys_of(store: LayerStore) -> Tensor:
    """The sequence's keys (key_value_heads, length, width)."""
    return store.keys[:, store.first : store.first + store.length].float()


def attention(store: LayerStore, queries: Tensor) -> Tensor:
    """softmax(q·k / √width) of queries (heads, …, width) over all of the sequence: (key_value_heads, group, …, length).

    Not causal: queries see every key that is stored.
    """
    keys = keys_of(store)
    heads, length, width = keys.shape
    by_group = queries.float().reshape(heads, -1, width)
    scores = by_group @ keys.transpose(1, 2) / math.sqrt(width)
    return scores.softmax(-1).reshape(heads, -1, *queries.shape[1:-1], length)


def of_step(store: LayerStore, queries: Floats) -> Tensor:
    """What one step's queries (heads, width) attend to: (key_value_heads, group, length)."""
    return attention(store, torch.from_numpy(queries).to(store.keys.device))


def attained(store: LayerStore, queries: Floats, runs: Runs) -> Floats:
    """The share of attention mass that each head (key_value_heads, group) of a step gets."""
    read = torch.from_numpy(mask_of(runs, store)).to(store.keys.device)
    mass = (of_step(store, queries) * read[:, None]).sum(-1)
    return np.asarray(mass.cpu().numpy(), np.float32)


def best_places(scores: Tensor) -> Tensor:
    """The best place of each item in the rankings of a group's heads: (key_value_heads, items).

    scores: (key_value_heads, group, items). Taking items in this order gives the union of what the heads would take,
    each as many, until a budget is spent.
    """
    places = scores.argsort(dim=-1, descending=True, stable=True).argsort(dim=-1)
    best: Tensor = places.amin(1)
    return best


def lowest(places: Tensor, count: int) -> Mask:
    """The `count` items of each row (key_value_heads, items) that come first; of equal places the earlier item."""
    order = places.argsort(dim=-1, stable=True)[:, :count]
    chosen = torch.zeros_like(places, dtype=torch.bool).scatter_(1, order, True)
    return np.asarray(chosen.cpu().numpy(), np.bool_)


def keep_ends(chosen: Mask, sinks: int, recent: int) -> Mask:
    """The same with the first `sinks` and the last `recent` tokens."""
    chosen[:, :sinks] = True
    chosen[:, max(0, chosen.shape[1] - recent) :] = True
    return chosen
