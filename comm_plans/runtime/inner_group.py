"""The group that does whatever is not planned: gloo for tensors on the CPU, NCCL for those on a GPU."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from comm_plans.runtime.lanes import PointToPoint

Kind = dist.ProcessGroup.BackendType


def inner_group(
    store: dist.Store, rank: int, world_size: int, timeout: timedelta, members: tuple[dist.ProcessGroup, ...] = ()
) -> dist.ProcessGroup:
    """A group of torch's own backends; `members` are further groups that shall fall back to the same ones."""
    group = dist.ProcessGroup(store, rank, world_size)
    gloo = dist.ProcessGroupGloo(dist.PrefixStore("gloo", store), rank, world_size, timeout)
    _enlist((group, *members), "cpu", Kind.GLOO, gloo)
    if torch.cuda.is_available() and dist.is_nccl_available():
        options = dist.ProcessGroupNCCL.Options()
        options._timeout = timeout
        nccl = dist.ProcessGroupNCCL(dist.PrefixStore("nccl", store), rank, world_size, options)
        _enlist((group, *members), "cuda", Kind.NCCL, nccl)
    return group


def gloo_messages(store: dist.Store, rank: int, world_size: int, timeout: float, interface: str | None) -> PointToPoint:
    """A group for sends and receives only, over `interface` where one is named, else as gloo chooses."""
    messages: Any
    if interface is None:
        messages = dist.ProcessGroupGloo(store, rank, world_size, timedelta(seconds=timeout))
    else:
        options = dist.ProcessGroupGloo._Options()  # type: ignore[attr-defined]  # missing in torch's stubs
        options._timeout = timedelta(seconds=timeout)
        options._devices = [dist.ProcessGroupGloo.create_device(interface=interface)]
        messages = dist.ProcessGroupGloo(store, rank, world_size, options)
    return messages  # type: ignore[no-any-return]  # torch's stubs lack its methods


def _enlist(groups: tuple[dist.ProcessGroup, ...], device: str, kind: Kind, backend: Any) -> None:
    for group in groups:
        group._register_backend(torch.device(device), kind, backend)
        group._set_default_backend(kind)
