"""Runs MSCCL XML on numpy buffers the way the GPU interpreters do, with thread blocks taking turns at random.

Memory nobody wrote is NaN, so reading it shows; connections hold one message, so a schedule that needs more shows as
a deadlock. `check` holds a file to the parsers' static rules first.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict, deque
from xml.etree import ElementTree

import numpy as np

SENDS = {"s", "rcs", "rrs", "rrcs"}
RECEIVES = {"r", "rcs", "rrc", "rrs", "rrcs"}
ALGORITHM = {
    "name", "proto", "nchannels", "nchunksperloop", "ngpus", "coll", "inplace", "outofplace", "minBytes", "maxBytes",
}  # fmt: skip
STEP = {"s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep"}


def check(text: str) -> ElementTree.Element:
    """The parsed file, after the rules that the MSCCL and RCCL parsers enforce."""
    algorithm = ElementTree.fromstring(text)
    assert algorithm.tag == "algo"
    assert set(algorithm.keys()) == ALGORITHM
    ranks, channels = int(algorithm.get("ngpus")), int(algorithm.get("nchannels"))
    assert 1 <= channels <= 32
    assert [int(gpu.get("id")) for gpu in algorithm] == list(range(ranks))
    senders, receivers = Counter(), Counter()
    for gpu in algorithm:
        _check_gpu(gpu, ranks, channels, senders, receivers)
    assert senders == receivers, "each message that is sent on a connection is received there"
    return algorithm


def _check_gpu(gpu, ranks, channels, senders, receivers):
    rank = int(gpu.get("id"))
    assert [int(block.get("id")) for block in gpu] == list(range(len(gpu)))
    assert len(gpu) <= 108
    sends_on, receives_on = Counter(), Counter()
    for block in gpu:
        send, receive, channel = (int(block.get(key)) for key in ("send", "recv", "chan"))
        assert 0 <= channel < channels
        assert rank not in (send, receive)
        assert -1 <= send < ranks
        assert -1 <= receive < ranks
        sends_on[send, channel] += 1
        receives_on[receive, channel] += 1
        assert [int(step.get("s")) for step in block] == list(range(len(block)))
        assert 0 < len(block) <= 256
        for step in block:
            _check_step(gpu, step, send, receive)
            if step.get("type") in SENDS:
                senders[rank, send, channel] += int(step.get("cnt"))
            if step.get("type") in RECEIVES:
                receivers[receive, rank, channel] += int(step.get("cnt"))
    for on in (sends_on, receives_on):
        assert all(uses == 1 for (peer, _), uses in on.items() if peer >= 0), "one thread block a connection"
        assert all(uses <= 32 for uses in Counter(channel for peer, channel in on if peer >= 0).values())


def _check_step(gpu, step, send, receive):
    assert set(step.keys()) == STEP
    assert 0 < int(step.get("cnt")) < 72
    assert send >= 0 or step.get("type") not in SENDS
    assert receive >= 0 or step.get("type") not in RECEIVES
    if (block := int(step.get("depid"))) >= 0:
        assert gpu[block][int(step.get("deps"))].get("hasdep") == "1"


def run(text: str, inputs: list[np.ndarray], *, seed: int, in_place: bool = False) -> list[np.ndarray]:
    """Execute the program; inputs[rank] has one number a chunk. Returns the outputs; inputs must come out unchanged
    (unless in place). Raises AssertionError on a deadlock or on an access outside a buffer."""
    algorithm = check(text)
    memory = [_memory(algorithm, gpu, own, in_place) for gpu, own in zip(algorithm, inputs, strict=True)]
    queues: dict[tuple[int, int, int], deque] = defaultdict(deque)
    done = [[0] * len(gpu) for gpu in algorithm]
    turns = [(rank, number) for rank, gpu in enumerate(algorithm) for number in range(len(gpu))]
    chance = random.Random(seed)
    while turns:
        chance.shuffle(turns)
        moved = [turn for turn in turns if _turn(algorithm, *turn, memory, queues, done)]
        assert moved, "deadlock: no thread block can take its next step"
        turns = [(rank, number) for rank, number in turns if done[rank][number] < len(algorithm[rank][number])]
    assert not any(queues.values())
    return [buffers["o"] for buffers in memory]


def _memory(algorithm, gpu, own, in_place):
    sizes = {name: int(gpu.get(f"{name}_chunks")) for name in "ios"}
    buffers = {name: np.full(size, np.nan) for name, size in sizes.items()}
    rank, kind = int(gpu.get("id")), algorithm.get("coll")
    if in_place and kind == "allgather":
        buffers["i"] = buffers["o"][rank * sizes["i"] :][: sizes["i"]]
    elif in_place and kind == "reduce_scatter":
        buffers["o"] = buffers["i"][rank * sizes["o"] :][: sizes["o"]]
    elif in_place and sizes["i"] == sizes["o"]:
        buffers["o"] = buffers["i"]
    buffers["i"][:] = own
    if not in_place:
        buffers["i"].setflags(write=False)
    return buffers


def _turn(algorithm, rank, number, memory, queues, done):
    """Take the next step of a thread block if nothing keeps it; says whether it did."""
    block = algorithm[rank][number]
    step = block[done[rank][number]]
    kind, size = step.get("type"), int(step.get("cnt"))
    send, receive, channel = (int(block.get(key)) for key in ("send", "recv", "chan"))
    wait = int(step.get("depid"))
    outgoing, incoming = queues[rank, send, channel], queues[receive, rank, channel]
    waiting = wait >= 0 and done[rank][wait] <= int(step.get("deps"))
    if waiting or (kind in SENDS and outgoing) or (kind in RECEIVES and not incoming):
        return False
    source = _view(
        memory[rank], step.get("srcbuf"), int(step.get("srcoff")), size, kind in {"s", "cpy"} or "rr" in kind
    )
    value = incoming.popleft() if kind in RECEIVES else source
    if "rr" in kind:
        value = value + source
    if kind in {"r", "rcs", "rrc", "rrcs", "cpy"}:
        _view(memory[rank], step.get("dstbuf"), int(step.get("dstoff")), size, True)[:] = value
    if kind in SENDS:
        outgoing.append(np.array(value))
    done[rank][number] += 1
    return True


def _view(buffers, name, offset, size, needed):
    view = buffers[name][offset : offset + size]
    assert not needed or (offset >= 0 and len(view) == size), f"{name}[{offset}:{offset + size}] is out of bounds"
    return view
