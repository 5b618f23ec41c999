"""What one iteration of a device consists of: operations, the resource that each keeps busy, and who waits for whom.

The graph is periodic: an operation may also wait for one of the iteration before (a layer for the layer before it, a
forward pass for the last optimizer step).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush
from itertools import pairwise

from trainers.errors import OverlapError

Range = tuple[int, int]


class Resource(StrEnum):
    """What an operation keeps busy; each is one stream: a worker thread, or a CUDA stream."""

    COMPUTE = "compute"
    MEMORY = "memory"
    NETWORK = "network"
    HOST = "host"
    DISK = "disk"


@dataclass(frozen=True)
class Operation:
    """One operation of an iteration.

    inputs: operations of the same iteration that it waits for; after: operations of the iteration before.
    tokens: half-open range of the batch that it works on; None: all of it. duplicable: may be cut by tokens.
    """

    name: str
    resource: Resource
    inputs: tuple[str, ...] = ()
    tokens: Range | None = None
    duplicable: bool = False
    after: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The operation that this one is a piece of: `KQV` of `KQV[0:256]`."""
        return self.name.partition("[")[0]


class OperationGraph:
    """Operations of an iteration over `batch` tokens, checked: OverlapError says in one sentence what is wrong."""

    def __init__(self, operations: Iterable[Operation], batch: int) -> None:
        self.operations = tuple(operations)
        self.batch = batch
        self._by_name = {operation.name: operation for operation in self.operations}
        self._check_names()
        self._check_ranges()
        self._check_order()

    def __getitem__(self, name: str) -> Operation:
        return self._by_name[name]

    def __len__(self) -> int:
        return len(self.operations)

    @property
    def names(self) -> tuple[str, ...]:
        """In the order in which they were given."""
        return tuple(self._by_name)

    @cached_property
    def resources(self) -> tuple[Resource, ...]:
        """Those in use, in the order of their definition."""
        used = {operation.resource for operation in self.operations}
        return tuple(resource for resource in Resource if resource in used)

    def on(self, resource: Resource) -> tuple[str, ...]:
        """Names of the operations that keep `resource` busy."""
        return tuple(operation.name for operation in self.operations if operation.resource == resource)

    def range_of(self, name: str) -> Range:
        """The tokens that an operation works on."""
        return self[name].tokens or (0, self.batch)

    def order(self) -> tuple[str, ...]:
        """One order that dependencies within an iteration allow: of those that are ready the first given."""
        return self._order

    @cached_property
    def _order(self) -> tuple[str, ...]:
        place = {name: index for index, name in enumerate(self.names)}
        missing = {name: len(set(self[name].inputs)) for name in self.names}
        readers: dict[str, list[str]] = {name: [] for name in self.names}
        for operation in self.operations:
            for source in set(operation.inputs):
                readers[source].append(operation.name)
        ready = [place[name] for name, count in missing.items() if not count]
        heapify(ready)
        found: list[str] = []
        while ready:
            found.append(self.names[heappop(ready)])
            for reader in readers[found[-1]]:
                missing[reader] -= 1
                if not missing[reader]:
                    heappush(ready, place[reader])
        return tuple(found)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what the graph says, in whatever order its operations and their inputs were given."""
        lines = sorted(
            [each.name, each.resource, sorted(set(each.inputs)), sorted(set(each.after)), self.range_of(each.name)]
            for each in self.operations
        )
        return hashlib.sha256(json.dumps([self.batch, lines]).encode()).hexdigest()

    def _check_names(self) -> None:
        seen: set[str] = set()
        for operation in self.operations:
            if operation.name in seen:
                raise OverlapError(f"Two operations are called {operation.name}; give each a name of its own.")
            seen.add(operation.name)
        for operation in self.operations:
            for source in (*operation.inputs, *operation.after):
                if source not in seen:
                    raise OverlapError(
                        f"{operation.name} waits for {source}, which the graph lacks; add it or drop the input."
                    )

    def _check_ranges(self) -> None:
        pieces: dict[str, list[Range]] = {}
        for operation in self.operations:
            begin, end = self.range_of(operation.name)
            if not 0 <= begin < end <= self.batch:
                raise OverlapError(
                    f"{operation.name} works on tokens {begin}:{end}, outside the batch 0:{self.batch}; cut it within."
                )
            pieces.setdefault(operation.family, []).append((begin, end))
        for family, ranges in pieces.items():
            for (_, end), (begin, _) in pairwise(sorted(ranges)):
                if begin != end:
                    what = "leave out" if begin > end else "work twice on"
                    low, high = sorted((begin, end))
                    raise OverlapError(f"The pieces of {family} {what} tokens {low}:{high}; let them tile its range.")

    def _check_order(self) -> None:
        try:
            TopologicalSorter({each.name: each.inputs for each in self.operations}).prepare()
        except CycleError as error:
            circle = " → ".join(error.args[1])
            raise OverlapError(
                f"Operations wait for each other in a circle: {circle}; drop one of the inputs."
            ) from None
