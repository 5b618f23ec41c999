"""Bytes over real TCP between ranks of a lab, timed from the sender's first to the receiver's last."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from threading import Thread
from time import monotonic

from lab.launcher import run_ranks

from comm_plans.lab_state import LabState

BURST = 65536  # bytes that a token bucket lets through at once
Pair = tuple[int, int]


def goodputs(state: LabState, pairs: Sequence[Pair], size: int) -> dict[Pair, float]:
    """Mbit/s that each pair of ranks moves, all at once, with `size` bytes each beyond the burst.

    However the machine is busy, none is more than its slowest link lets through.
    """
    addresses = [node.address for node in state.ranks]
    measured = run_ranks(state, _rank, list(pairs), size + BURST, addresses, seconds=60)
    return {pair: size * 8 / taken / 1e6 for times in measured for pair, taken in times}


def _rank(rank: int, pairs: list[Pair], size: int, addresses: list[str]) -> list[tuple[Pair, float]]:
    times: list[tuple[Pair, float]] = []
    threads = [Thread(target=_send, args=(addresses[pair[1]], _port(pair), size)) for pair in pairs if pair[0] == rank]
    for pair in pairs:
        if pair[1] == rank:
            listener = socket.create_server((addresses[rank], _port(pair)))
            threads.append(Thread(target=lambda *given: times.append(_received(*given)), args=(listener, pair)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times


def _port(pair: Pair) -> int:
    return 9000 + pair[0]


def _send(address: str, port: int, size: int) -> None:
    with next(_tries(address, port)) as connection:
        connection.sendall(struct.pack("d", monotonic()) + bytes(size))


def _tries(address: str, port: int) -> Iterator[socket.socket]:
    """Until the other side listens."""
    while True:
        with suppress(ConnectionRefusedError):
            yield socket.create_connection((address, port))


def _received(listener: socket.socket, pair: Pair) -> tuple[Pair, float]:
    connection, _ = listener.accept()
    (begin,) = struct.unpack("d", connection.recv(8, socket.MSG_WAITALL))
    while connection.recv(65536):
        pass
    return pair, monotonic() - begin
