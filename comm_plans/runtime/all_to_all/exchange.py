"""Ranks that exchange rows whose counts change from call to call, on a process group of their own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor

from comm_plans.all_to_all.cluster import Bytes, Cluster
from comm_plans.all_to_all.cluster_file import cluster_from
from comm_plans.all_to_all.flash import pipelined
from comm_plans.errors import ClusterError
from comm_plans.runtime.all_to_all.planned_route import PlannedRoute
from comm_plans.runtime.all_to_all.routes import BackendRoute, Route, Staying


class Exchange(Protocol):
    """All-to-all among ranks."""

    def table(self, counts: Tensor) -> Bytes:
        """Every rank's vector of counts (int64, as many on each), as the rows of one table."""

    def route(self, counts: Bytes, row_bytes: int) -> Route:
        """The way of `counts` rows of `row_bytes` bytes from rank to rank (N×N); equal arguments on every rank."""


class Alone:
    """One rank, which exchanges with itself."""

    def table(self, counts: Tensor) -> Bytes:
        """See `Exchange`."""
        return counts.cpu().numpy()[None]

    def route(self, counts: Bytes, row_bytes: int) -> Route:
        """See `Exchange`."""
        return Staying()


class GroupExchange:
    """All ranks of the initialised process group, which all make it at once.

    cluster: what plans are made for; None: rows travel by the backend's own all-to-all. timeout: seconds after which a
    silent peer is an error. Raises ClusterError where the cluster has another number of GPUs than there are ranks.
    """

    def __init__(self, cluster: Cluster | None = None, timeout: float = 300.0) -> None:
        self._cluster = cluster
        check_ranks(cluster, dist.get_world_size())
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        self._group = dist.new_group(backend=backend, timeout=timedelta(seconds=timeout))

    def table(self, counts: Tensor) -> Bytes:
        """See `Exchange`."""
        rows = [torch.empty_like(counts) for _ in range(self._group.size())]
        dist.all_gather(rows, counts, group=self._group)
        return torch.stack(rows).cpu().numpy()

    def route(self, counts: Bytes, row_bytes: int) -> Route:
        """See `Exchange`."""
        if self._cluster is None:
            return BackendRoute(self._group, counts)
        sizes = counts * row_bytes
        return PlannedRoute.along(self._group, sizes, list(pipelined(self._cluster, sizes).steps()))


def exchange(cluster: Mapping[str, Any] | None = None) -> Exchange:
    """The exchange among all ranks of this training; made on all of them at once.

    cluster: the keys of a cluster file, where rows are to travel by plan. Raises ClusterError where it is wrong.
    """
    described = cluster_from(dict(cluster)) if cluster is not None else None
    if dist.is_initialized():
        return GroupExchange(described)
    check_ranks(described, 1)
    return Alone()


def check_ranks(cluster: Cluster | None, ranks: int) -> None:
    """Raise ClusterError unless the cluster has a GPU for each rank."""
    if cluster is not None and cluster.ranks != ranks:
        raise ClusterError(f"the cluster has {cluster.ranks} GPUs and the training {ranks} ranks; make them equal")
