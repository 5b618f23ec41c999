"""Keys by nearness: k-means of a stretch of slots a key-value head, after which every cluster is one run of slots."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

FIT_ON = 4
"""Centres are fitted to one key in so many, which costs little accuracy and most of the time otherwise …"""

FEW = 2048
"""… but at least to so many keys, or to all."""

AT_ONCE = 1024
"""Keys whose distances to all centres fit the cache."""


@dataclass(frozen=True)
class Clusters:
    """Of one stretch: means (key_value_heads, clusters, width) and sizes (key_value_heads, clusters), in slot order."""

    means: NDArray[np.float32]
    sizes: NDArray[np.int64]


def cluster(keys: Tensor, values: Tensor, size: int, iterations: int, seed: int) -> Clusters:
    """Reorder keys and values (key_value_heads, tokens, width) in place, so that those of a cluster lie side by side.

    tokens / size clusters a head by Lloyd's algorithm from distinct random keys; a cluster that loses all of its keys
    keeps its centre. Equal keys and seeds give equal clusters.
    """
    count = max(1, keys.shape[1] // size)
    owners, means = _in_chain(*_lloyd(keys.float(), count, iterations, seed))
    for head, order in enumerate(owners.argsort(dim=1, stable=True)):
        keys[head], values[head] = keys[head, order], values[head, order]
    sizes = torch.zeros(owners.shape[0], count, dtype=torch.int64, device=keys.device)
    sizes.scatter_add_(1, owners, torch.ones_like(owners))
    return Clusters(means.cpu().numpy(), sizes.cpu().numpy())


def _lloyd(keys: Tensor, count: int, iterations: int, seed: int) -> tuple[Tensor, Tensor]:
    """The cluster of each key (batch, tokens, width): (batch, tokens), and the clusters' means."""
    order = torch.randperm(keys.shape[1], generator=torch.Generator().manual_seed(seed)).to(keys.device)
    few = keys[:, order[: max(keys.shape[1] // FIT_ON, FEW)]]
    centres = few[:, :count]
    for _ in range(iterations):
        centres = _moved(few, _nearest(few, centres), centres)
    owners = _nearest(keys, centres)
    return owners, _moved(keys, owners, centres)


def _nearest(keys: Tensor, centres: Tensor) -> Tensor:
    """By ‖k - c‖², of which ‖k‖² is the same for every centre."""
    squares, turned = centres.square().sum(-1)[:, None], centres.transpose(1, 2)
    parts = [_lowest(torch.baddbmm(squares, part, turned, alpha=-2)) for part in keys.split(AT_ONCE, dim=1)]
    return torch.cat(parts, 1)


def _lowest(distances: Tensor) -> Tensor:
    """argmin of the last dimension; numpy's is a tenth of torch's in time."""
    return torch.from_numpy(distances.cpu().numpy().argmin(-1)).to(distances.device)


def _moved(keys: Tensor, owners: Tensor, centres: Tensor) -> Tensor:
    """The mean of each centre's keys; a centre without keys stays."""
    batch, count, width = centres.shape
    flat = (owners + count * torch.arange(batch, device=keys.device)[:, None]).reshape(-1)
    sums = centres.new_zeros(batch * count, width).index_add_(0, flat, keys.reshape(-1, width))
    sizes = torch.bincount(flat, minlength=batch * count)[:, None]
    return torch.where(sizes > 0, sums / sizes.clamp(min=1), centres.reshape(-1, width)).reshape(centres.shape)


def _in_chain(owners: Tensor, means: Tensor) -> tuple[Tensor, Tensor]:
    """The same clusters, numbered so that each is followed by a near one: a step often reads neighbours as one run."""
    order = torch.from_numpy(np.stack([_chain(head) for head in means.cpu().numpy()])).to(means.device)
    return order.argsort(1).gather(1, owners), means.gather(1, order[..., None].expand_as(means))


def _chain(means: NDArray[np.float32]) -> NDArray[np.int64]:
    """Places of means (clusters, width) on a way that goes on to the nearest of those it has not passed."""
    apart = np.square(means).sum(1) / 2 - means @ means.T
    passed = np.zeros(len(means), np.float32)
    order, at = np.empty(len(means), np.int64), 0
    for place in range(len(means)):
        order[place], passed[at] = at, np.inf
        at = int((apart[at] + passed).argmin())
    return order
