"""Runs the programs of all ranks in one process, with deliveries in random order, and checks what they leave behind.

It shares nothing with the transports but the programs: what passes here gives the right result on any transport that
keeps the order of each connection.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comm_plans.errors import PlanError
from comm_plans.runtime.program import RankProgram, TreePart

Values = NDArray[np.int64]


def replay(programs: Sequence[RankProgram], elements: int, *, chunk: int = 1, seed: int = 0) -> None:
    """Run one collective of `elements` random integers that move `chunk` at a time.

    Raises PlanError where a rank waits for ever, gets anything that it does not wait for, or ends with a wrong result.
    """
    random = Random(seed)
    run = _Run(programs, np.random.default_rng(seed).integers(-1000, 1000, (len(programs), elements)), chunk)
    run.start()
    while run.flying:
        run.deliver(random.choice(list(run.flying)))
    run.check_end()
    _check_result(programs[0], run.inputs, run.buffers)


class _Channel(NamedTuple):
    """One edge of one tree in one phase; what is sent on it arrives in order."""

    reduce: bool
    tree: int
    source: int
    target: int


class _Run:
    """The state of all ranks."""

    def __init__(self, programs: Sequence[RankProgram], inputs: Values, chunk: int) -> None:
        self.programs, self.inputs, self.chunk = programs, inputs, chunk
        self.buffers = inputs.copy()
        if programs[0].collective == "all_gather":
            self._keep_own_shards()
        self.flying: defaultdict[_Channel, deque[tuple[int, Values]]] = defaultdict(deque)
        self.waiting = {
            (_Channel(reduce, tree.index, peer, program.rank), low)
            for program in programs
            for tree in program.trees
            for low in self._chunks(program, tree)
            for reduce, peer in _sources(tree)
        }
        self.parked: dict[tuple[_Channel, int], Values] = {}
        self.added: defaultdict[tuple[int, int, int], int] = defaultdict(int)

    def start(self) -> None:
        """Each rank does what waits for nobody."""
        for program in self.programs:
            for tree in program.trees:
                for low in self._chunks(program, tree):
                    self._add(program, tree, low)

    def deliver(self, channel: _Channel) -> None:
        """The first chunk on the channel arrives."""
        low, values = self.flying[channel].popleft()
        if not self.flying[channel]:
            del self.flying[channel]
        if (channel, low) not in self.waiting:
            raise PlanError(f"{_named(channel)}: element {low} comes to rank {channel.target}, which waits for none")
        self.waiting.remove((channel, low))
        program = self.programs[channel.target]
        tree = program.trees[channel.tree]
        if channel.reduce:
            self.parked[channel, low] = values
            self._add(program, tree, low)
        else:
            self.buffers[channel.target, low : low + len(values)] = values
            self._send(program, tree, low, reduce=False)

    def check_end(self) -> None:
        """Raise PlanError if a rank still waits."""
        for channel, low in sorted(self.waiting)[:1]:
            raise PlanError(f"{_named(channel)}: rank {channel.target} waits for element {low} for ever")

    def _add(self, program: RankProgram, tree: TreePart, low: int) -> None:
        """Add what is here in the order of the children, and pass on what is complete."""
        done = (program.rank, tree.index, low)
        for child in tree.reduce_children[self.added[done] :]:
            values = self.parked.pop((_Channel(True, tree.index, child, program.rank), low), None)
            if values is None:
                return
            self.buffers[program.rank, low : low + len(values)] += values
            self.added[done] += 1
        self._send(program, tree, low, reduce=True)
        if tree.broadcast_parent is None:
            self._send(program, tree, low, reduce=False)

    def _send(self, program: RankProgram, tree: TreePart, low: int, *, reduce: bool) -> None:
        _, high = program.piece(tree, self.inputs.shape[1])
        parents = () if tree.reduce_parent is None else (tree.reduce_parent,)
        for peer in parents if reduce else tree.broadcast_children:
            values = self.buffers[program.rank, low : min(low + self.chunk, high)].copy()
            self.flying[_Channel(reduce, tree.index, program.rank, peer)].append((low, values))

    def _chunks(self, program: RankProgram, tree: TreePart) -> range:
        return range(*program.piece(tree, self.inputs.shape[1]), self.chunk)

    def _keep_own_shards(self) -> None:
        shard = self.inputs.shape[1] // len(self.programs)
        for rank, buffer in enumerate(self.buffers):
            buffer[: rank * shard] = buffer[(rank + 1) * shard :] = 0


def _sources(tree: TreePart) -> list[tuple[bool, int]]:
    """The peers from which data comes, and whether it is added."""
    parents = [] if tree.broadcast_parent is None else [(False, tree.broadcast_parent)]
    return [(True, child) for child in tree.reduce_children] + parents


def _named(channel: _Channel) -> str:
    return f"tree {channel.tree}, {'reducing' if channel.reduce else 'broadcasting'} from rank {channel.source}"


def _check_result(program: RankProgram, inputs: Values, buffers: Values) -> None:
    """Compare what each rank must end with; raise PlanError for the first rank that ends with something else."""
    ranks, elements = inputs.shape
    total, shards = inputs.sum(axis=0), np.arange(elements) * ranks // max(elements, 1)
    gathered = inputs[shards, np.arange(elements)] if elements else total
    right = {"broadcast": inputs[program.root or 0], "all_gather": gathered}.get(program.collective, total)
    for rank in range(ranks):
        held = {"reduce": np.full(elements, rank == program.root), "reduce_scatter": shards == rank}
        counts = held.get(program.collective, np.full(elements, True))
        if (buffers[rank] != right)[counts].any():
            raise PlanError(f"{program.collective} leaves a wrong result at rank {rank}")
