"""Carries out programs in rounds, each as one batch of sends and receives: the form in which NCCL can do a plan.

On the CPU this is tested over gloo. It has never run on GPUs: there a round is one group of NCCL calls, and what
follows on the current stream waits for it.
"""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from comm_plans.runtime.rounds import Message, RoundProgram


def run_rounds(group: dist.ProcessGroup, program: RoundProgram, buffer: Tensor) -> None:
    """Carry out a program on a flat, contiguous buffer, in place, as `Transport.submit` describes it.

    Returns when it is done, on a GPU as soon as it is on the current stream. Every rank of `group`, which has no other
    messages under way, calls it at the same point.
    """
    for messages in program.rounds:
        spans = [(message, program.span(message, len(buffer))) for message in messages]
        _round(group, [(message, buffer[low:high]) for message, (low, high) in spans if high > low])


def _round(group: dist.ProcessGroup, moves: list[tuple[Message, Tensor]]) -> None:
    """Send and receive all at once, then add up what came, in the order of the messages."""
    landings = [torch.empty_like(place) if message.adds else place for message, place in moves]
    for work in _batch(group, [message for message, _ in moves], landings):
        work.wait()
    for (message, place), landing in zip(moves, landings, strict=True):
        if message.adds:
            place += landing


def _batch(group: dist.ProcessGroup, messages: list[Message], tensors: list[Tensor]) -> list[dist.Work]:
    grouped = bool(tensors) and tensors[0].is_cuda
    if grouped:
        group._start_coalescing(tensors[0].device)
    works = [
        (group.send if message.sends else group.recv)([tensor], message.peer, 0)
        for message, tensor in zip(messages, tensors, strict=True)
    ]
    return [group._end_coalescing(tensors[0].device)] if grouped else works
