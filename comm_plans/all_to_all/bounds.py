"""What no schedule of an all-to-all on a cluster can beat, and how busy the fabric inside the servers is: fluid times.

All in seconds. `tiles` is the traffic in bytes as [server i, GPU g, server j, GPU h] (`Cluster.tiles`); each server's
bytes for another one are spread evenly over its cards, and mixed evenly over time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from comm_plans.all_to_all.cluster import Bytes, Cluster

Both = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class Fluid:
    """Traffic on a cluster as a fluid."""

    cluster: Cluster
    tiles: Bytes

    @cached_property
    def outgoing(self) -> Bytes:
        """Bytes of GPU g of server i for server j, as [i, g, j], without those that stay."""
        return self._without_local(self.tiles.sum(3), (0, 2))

    @cached_property
    def incoming(self) -> Bytes:
        """Bytes from server i for GPU h of server j, as [i, j, h], without those that stay."""
        return self._without_local(self.tiles.sum(1), (0, 1))

    @cached_property
    def between(self) -> Bytes:
        """Bytes from server i to server j ≠ i."""
        between: Bytes = self.outgoing.sum(1)
        return between

    @cached_property
    def quota(self) -> Bytes:
        """Bytes that each card of server i sends to server j: an equal share, rounded up."""
        quota: Bytes = -(-self.between // self.cluster.rails)
        return quota

    @cached_property
    def inter_seconds(self) -> float:
        """T_inter: all cards of the busiest server at work all the time."""
        cards = np.array(self.cluster.sizes) * self.cluster.nic_bytes
        return float((np.maximum(self.between.sum(0), self.between.sum(1)) / cards).max())

    @cached_property
    def gpu_seconds(self) -> float:
        """T_gpu: every byte leaves and enters its GPU by the card or the fabric."""
        busiest = max(self.tiles.sum((2, 3)).max(), self.tiles.sum((0, 1)).max())
        return float(busiest / (self.cluster.intra_bytes + self.cluster.nic_bytes))

    @property
    def lower_bound_seconds(self) -> float:
        """The larger of T_inter and T_gpu: a bound for every schedule, whatever it relays."""
        return max(self.inter_seconds, self.gpu_seconds)

    @property
    def bottleneck(self) -> str:
        """What the lower bound comes from, in words."""
        if self.gpu_seconds > self.inter_seconds:
            sent, received = self.tiles.sum((2, 3)), self.tiles.sum((0, 1))
            verb = "sends" if sent.max() >= received.max() else "receives"
            server, gpu = np.unravel_index(int(np.maximum(sent, received).argmax()), sent.shape)
            return f"GPU {gpu} of server {server} {verb} as much as its card and the fabric carry"
        sent, received = (self.between.sum(way) / np.array(self.cluster.sizes) for way in (1, 0))
        verb = "leaves" if sent.max() >= received.max() else "enters"
        return f"the cards of server {int(np.maximum(sent, received).argmax())} must carry all that {verb} it"

    @property
    def direct_seconds(self) -> float:
        """The bound of schedules that relay nothing: the busiest card with its own GPU's bytes."""
        busiest = max(self.outgoing.sum(2).max(), self.incoming.sum(0).max())
        return float(busiest / self.cluster.nic_bytes)

    @cached_property
    def local(self) -> Both:
        """Bytes that each GPU [server, GPU] sends to, and receives from, its own server."""
        servers = np.arange(self.cluster.servers)
        inside = self.tiles[servers, :, servers, :]
        return inside.sum(2, dtype=float), inside.sum(1, dtype=float)

    @cached_property
    def balance(self) -> Both:
        """What donors give and takers get."""
        excess = self.outgoing - self._shares.transpose(0, 2, 1)
        return np.maximum(excess, 0).sum(2), np.maximum(-excess, 0).sum(2)

    @cached_property
    def redistribution(self) -> Both:
        """What the receiving cards hand on, and what their neighbours get."""
        between = np.maximum(self.between, 1)[:, :, None]
        kept = self._shares * self.incoming / between
        return (self._shares - kept).sum(0), (self.incoming - kept).sum(0)

    def fabric_seconds(self, *parts: Both) -> float:
        """Time of these parts together on fabrics that limit what a GPU sends and receives."""
        directions = (sum(part[way] for part in parts) for way in range(2))
        return max(float(np.max(bytes_)) for bytes_ in directions) / self.cluster.intra_bytes

    @property
    def fabric_total_seconds(self) -> float:
        """Balance, redistribution and local traffic together."""
        return self.fabric_seconds(self.balance, self.redistribution, self.local)

    @property
    def skew(self) -> Both:
        """How long balance and redistribution keep a GPU sending and receiving (two numbers each), for the most skewed
        of the larger pairs of servers, as parts of the time that the cards work for the pair."""
        rate = self.cluster.nic_bytes / self.cluster.intra_bytes
        large = self.quota * self.quota.size >= max(1, self.quota.sum())
        if not large.any():
            return np.zeros(2), np.zeros(2)
        cards = self.quota[large][:, None]
        excess = (self.outgoing.transpose(0, 2, 1) - self._shares)[large] / cards
        received = self.incoming[large] * (1 - 1 / self.cluster.rails[large])[:, None] / cards
        return rate * np.array([excess.max(), -excess.min()]), rate * np.array([self.cluster.gpus > 1, received.max()])

    @cached_property
    def _shares(self) -> NDArray[np.float64]:
        """An equal share of the bytes from i to j for each of the cards that the two have in common, as [i, j, g]."""
        used = np.arange(self.cluster.gpus) < self.cluster.rails[:, :, None]
        return (self.between / self.cluster.rails)[:, :, None] * used

    def _without_local(self, sums: Bytes, axes: tuple[int, int]) -> Bytes:
        servers = np.arange(self.cluster.servers)
        index: list[object] = [slice(None)] * 3
        index[axes[0]], index[axes[1]] = servers, servers
        sums[tuple(index)] = 0  # type: ignore[index]
        return sums
