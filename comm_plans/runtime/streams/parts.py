"""A job cut into parts: for each tree what this rank sends, lets land and adds, and what waits for what."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from comm_plans.runtime.aliases import writable
from comm_plans.runtime.program import RankProgram, TreePart
from comm_plans.runtime.streams.ends import End, Inlet, Outlet
from comm_plans.runtime.streams.flow import Adding, Countdown, Landing, Mark, Sending
from comm_plans.runtime.streams.wires import Phase, Wire


class Piece(NamedTuple):
    """The elements `[low, high)` that a tree carries, `chunk` bytes at a time."""

    tree: TreePart
    low: int
    high: int
    chunk: int


class Layout(NamedTuple):
    """How a program cuts a buffer, and the seconds that it is predicted to take."""

    pieces: tuple[Piece, ...]
    seconds: float


@lru_cache(maxsize=1024)
def layout(program: RankProgram, elements: int, item: int) -> Layout:
    """The layout of a full buffer of `elements` of `item` bytes each; empty pieces are left out."""
    size = elements * item
    pieces = (Piece(tree, *program.piece(tree, elements), program.chunk_bytes(tree, size)) for tree in program.trees)
    return Layout(tuple(piece for piece in pieces if piece.low < piece.high), program.seconds(size))


def hand_out(job: Countdown, rank: int, pieces: tuple[Piece, ...], buffer: Tensor, ends: Mapping[Wire, End]) -> None:
    """Give each end of a connection its parts of the job, in the order of the trees."""
    if pieces:
        numbers = writable(buffer)
        array = numbers.view(torch.uint8).numpy()
    for piece in pieces:
        low, high = piece.low * buffer.element_size(), piece.high * buffer.element_size()
        _Course(job, rank, piece, numbers[piece.low : piece.high], array.data[low:high], ends).run()
    job.part_done()  # the handing out itself, without which an early end could be taken for that of all parts


class _Course:
    """The way of one piece through this rank."""

    def __init__(
        self, job: Countdown, rank: int, piece: Piece, target: Tensor, view: memoryview, ends: Mapping[Wire, End]
    ) -> None:
        self.job, self.rank, self.tree, self.chunk = job, rank, piece.tree, piece.chunk
        self.target, self.view, self.ends = target, view, ends

    def run(self) -> None:
        """Sum up, pass the sum on towards the root; take what comes down from it and pass that on."""
        summed = self._summed()
        if self.tree.reduce_parent is not None:
            self._send(Phase.REDUCE, self.tree.reduce_parent, summed)
        final = self._landed() if self.tree.broadcast_parent is not None else summed
        for child in self.tree.broadcast_children:
            self._send(Phase.BROADCAST, child, final)

    def _summed(self) -> Mark:
        """The mark of the sum over this rank and all its children, added one after the other."""
        summed = Mark(len(self.view))
        for child in self.tree.reduce_children:
            inlet, before, summed = self._inlet(Phase.REDUCE, child), summed, Mark()
            before.watchers.append(inlet)
            self.job.part_added()
            inlet.take(Adding(self.job, self.chunk, inlet.window, self.target, before, summed))
        return summed

    def _landed(self) -> Mark:
        assert self.tree.broadcast_parent is not None
        final = Mark()
        self.job.part_added()
        inlet = self._inlet(Phase.BROADCAST, self.tree.broadcast_parent)
        inlet.take(Landing(self.job, self.chunk, self.view, final))
        return final

    def _inlet(self, phase: Phase, peer: int) -> Inlet:
        end = self.ends[Wire(phase, self.tree.index, peer, self.rank)]
        assert isinstance(end, Inlet)
        return end

    def _send(self, phase: Phase, peer: int, ready: Mark) -> None:
        end = self.ends[Wire(phase, self.tree.index, self.rank, peer)]
        assert isinstance(end, Outlet)
        ready.watchers.append(end)
        self.job.part_added()
        end.take(Sending(self.job, self.view, ready))
