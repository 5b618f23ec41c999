"""A cluster as FLASH sees it: servers of GPUs, a fast fabric inside each, one network card a GPU between them.

GPU `g` of server `i` has the place `i·G + g`, where G is the size of the largest server; smaller servers leave their
last places empty. Ranks number the GPUs that exist, in order of their places.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from comm_plans.errors import ClusterError, TrafficError

Bytes = NDArray[np.int64]
Places = NDArray[np.int32]

GIGA = 1e9
MOST_RANKS = 4096
MOST_GPUS = 256  # a server
MOST_BANDWIDTH = 1e9  # GB/s
MOST_LATENCY = 1.0  # seconds
INTRA_LATENCY, NIC_LATENCY = 0.3e-6, 2.6e-6  # of an MI300X cluster, as the authors' public topology file has it
FABRICS = ("switch", "mesh")


@dataclass(frozen=True)
class Cluster:
    """Servers of `sizes` GPUs. Bandwidths in GB/s a GPU one way, latencies in seconds a message.

    intra_fabric: `switch` limits what a GPU sends and receives inside its server; `mesh` gives each ordered pair a link
    of intra_bandwidth / (G − 1). Raises ClusterError for anything no cluster can have.
    """

    sizes: tuple[int, ...]
    intra_bandwidth: float
    nic_bandwidth: float
    intra_latency: float = INTRA_LATENCY
    nic_latency: float = NIC_LATENCY
    intra_fabric: str = "switch"

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) < 1 or sum(self.sizes) > MOST_RANKS:
            raise ClusterError(f"a cluster has 1 to {MOST_RANKS} GPUs and no server without one; mend servers or GPUs")
        if self.gpus > MOST_GPUS:
            raise ClusterError(f"a server of {self.gpus} GPUs is too large; gpus_per_server goes up to {MOST_GPUS}")
        for name in ("intra_bandwidth", "nic_bandwidth"):
            if not 0 < getattr(self, name) <= MOST_BANDWIDTH:
                raise ClusterError(f"{name} is {getattr(self, name):g}; give more than 0 and at most 10⁹ GB/s")
        for name in ("intra_latency", "nic_latency"):
            if not 0 <= getattr(self, name) <= MOST_LATENCY:
                raise ClusterError(f"{name} is {getattr(self, name):g}; give 0 to {MOST_LATENCY:g} seconds")
        if self.intra_fabric not in FABRICS:
            raise ClusterError(f"intra_fabric is {self.intra_fabric[:40]!r}; write switch or mesh")

    @property
    def servers(self) -> int:
        """Number of servers S."""
        return len(self.sizes)

    @cached_property
    def gpus(self) -> int:
        """GPUs of the largest server, G."""
        return max(self.sizes)

    @cached_property
    def ranks(self) -> int:
        """Number of GPUs that exist."""
        return sum(self.sizes)

    @property
    def intra_bytes(self) -> float:
        """Bytes a second that a GPU sends inside its server."""
        return self.intra_bandwidth * GIGA

    @property
    def link_bytes(self) -> float:
        """Bytes a second of one link of a mesh."""
        return self.intra_bytes / max(1, self.gpus - 1)

    @property
    def nic_bytes(self) -> float:
        """Bytes a second that a network card sends."""
        return self.nic_bandwidth * GIGA

    @property
    def skew_cost(self) -> float:
        """ρ = (G − 1)·B2 / B1: what the worst skew inside a server can cost, as a part of the time between servers."""
        return (self.gpus - 1) * self.nic_bandwidth / self.intra_bandwidth

    @cached_property
    def uniform(self) -> bool:
        """Whether all servers are of one size."""
        return min(self.sizes) == self.gpus

    @cached_property
    def places(self) -> Places:
        """The place of each rank: i·G + g."""
        held = np.arange(self.gpus)[None, :] < np.array(self.sizes)[:, None]
        return np.flatnonzero(held).astype(np.int32)

    @cached_property
    def rank_at(self) -> Places:
        """The rank at each place, −1 at empty ones."""
        ranks = np.full(self.servers * self.gpus, -1, np.int32)
        ranks[self.places] = np.arange(self.ranks, dtype=np.int32)
        return ranks

    @cached_property
    def server_of(self) -> Places:
        """The server of each rank."""
        return (self.places // self.gpus).astype(np.int32)

    @cached_property
    def rails(self) -> Bytes:
        """How many network cards can work between each two servers at once: the size of the smaller one."""
        sizes = np.array(self.sizes, np.int64)
        return np.minimum(sizes[:, None], sizes[None, :])

    def tiles(self, traffic: Bytes) -> Bytes:
        """Traffic among ranks (N×N bytes) as [server, GPU, server, GPU], zero at empty places and on the diagonal."""
        if traffic.shape != (self.ranks, self.ranks):
            raise TrafficError(
                f"the traffic is {' × '.join(map(str, traffic.shape))}; "
                f"this cluster has {self.ranks} GPUs and needs {self.ranks} × {self.ranks}"
            )
        padded = np.array(traffic, np.int64, order="C") if self.uniform else self._padded(traffic)
        np.fill_diagonal(padded, 0)
        return padded.reshape(self.servers, self.gpus, self.servers, self.gpus)

    def _padded(self, traffic: Bytes) -> Bytes:
        padded = np.zeros((self.servers * self.gpus,) * 2, np.int64)
        padded[np.ix_(self.places, self.places)] = traffic
        return padded
