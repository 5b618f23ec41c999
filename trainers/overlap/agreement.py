"""Ranks that overlap say what they will do before they do it, and tell one another when one of them fails."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from datetime import timedelta
from time import monotonic, sleep
from typing import Any

import torch.distributed as dist
from torch.distributed.distributed_c10d import _get_default_store

from trainers.errors import OverlapError

_FAILURE = "failure"
_PERIOD = 0.05  # seconds between two looks for what a rank says


class Notices:
    """What a rank that fails leaves in the group's store, so that all others end with its reason."""

    def __init__(self) -> None:
        self._store = dist.PrefixStore("overlap", _get_default_store())

    def post(self, words: str) -> None:
        """Say why this rank fails, unless another one has failed before."""
        with suppress(RuntimeError):
            self._store.compare_set(_FAILURE, "", f"rank {dist.get_rank()}: {words}")

    def heard(self) -> str | None:
        """Why a rank has failed, if one has."""
        try:
            return self._store.get(_FAILURE).decode() if self._store.check([_FAILURE]) else None
        except RuntimeError:
            return "rank 0 and its store are gone"


class Votes:
    """Statements that every rank makes in the same order, through the group's store."""

    def __init__(self, name: str, notices: Notices) -> None:
        self._store = dist.PrefixStore(f"overlap/{name}", _get_default_store())
        self._notices = notices
        self._round = 0

    def statements(self, own: Any) -> list[Any]:
        """Make a statement (JSON) and hear those of all ranks, in their order. OverlapError where one is missing."""
        self._round += 1
        self._store.set(f"{self._round}/{dist.get_rank()}", json.dumps(own))
        return [self._heard(rank) for rank in range(dist.get_world_size())]

    def agree(self, what: str, own: Any) -> None:
        """Raise OverlapError on every rank where one of them states anything else than rank 0."""
        digests = [hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()]
        digests = self.statements(digests[0])
        other = next((rank for rank, digest in enumerate(digests) if digest != digests[0]), None)
        if other is not None:
            raise OverlapError(
                f"Rank {other} has another {what} ({digests[other][:12]}) than rank 0 ({digests[0][:12]}); start all "
                "ranks with the same code, model and configuration."
            )

    def _heard(self, rank: int) -> Any:
        waiting: timedelta = self._store.timeout  # type: ignore[attr-defined]  # missing in torch's stubs
        key, end = f"{self._round}/{rank}", monotonic() + waiting.total_seconds()
        while not self._there(key):
            reason = self._notices.heard()
            if reason is None and monotonic() > end:
                reason = f"rank {rank} said nothing for as long as the store waits"
            if reason is not None:
                raise OverlapError(f"The ranks found no agreement on how to overlap: {reason}")
            sleep(_PERIOD)
        return json.loads(self._store.get(key))

    def _there(self, key: str) -> bool:
        try:
            return self._store.check([key])
        except RuntimeError:  # the store is gone, which the notices tell
            return False
