"""All ranks of a group say the same thing through the store, or all of them learn who does not."""

from __future__ import annotations

import json
from typing import Any

import torch.distributed as dist

from comm_plans.runtime.program import RankProgram
from comm_plans.runtime.transport import TransportError


class Meeting:
    """What the ranks of one group tell one another, statement after statement, each under a key of its own."""

    def __init__(self, store: dist.Store, rank: int, world_size: int) -> None:
        self._store = store
        self._rank = rank
        self._world_size = world_size
        self._round = 0

    @property
    def first(self) -> bool:
        """Whether this is rank 0."""
        return self._rank == 0

    def statements(self, own: Any) -> list[Any]:
        """Make a statement (JSON) and hear those of all ranks, in rank order. Every rank calls this equally often."""
        self._round += 1
        self._store.set(self._key(self._rank), json.dumps(own))
        return [json.loads(self._store.get(self._key(rank))) for rank in range(self._world_size)]

    def from_first(self, own: Any) -> Any:
        """What rank 0 states; the others' `own` is not looked at."""
        self._round += 1
        if self.first:
            self._store.set(self._key(0), json.dumps(own))
        return json.loads(self._store.get(self._key(0)))

    def _key(self, rank: int) -> str:
        return f"{self._round}/{rank}"


def check_digests(meeting: Meeting, program: RankProgram) -> None:
    """Compare the plan that every rank is about to follow. Raises TransportError on all ranks where they differ."""
    digests = meeting.statements(program.digest)
    other = next((rank for rank, digest in enumerate(digests) if digest != digests[0]), None)
    if other is not None:
        raise TransportError(
            f"rank {other} holds another {program.collective} plan ({digests[other][:12]}) than rank 0 "
            f"({digests[0][:12]}); give all ranks the same plans"
        )
