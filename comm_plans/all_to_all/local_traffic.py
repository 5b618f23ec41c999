"""Traffic that stays inside its server: when it runs, beside the slots that leave the fabric time for it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from comm_plans.all_to_all.cluster import Bytes, Places
from comm_plans.compiled import compiled

_SMALLEST = 1 / 1024  # of a server's local traffic, below which a gap is left alone


class Local(NamedTuple):
    """Pieces `first[t] … first[t + 1]` run in step t: bytes `low … high` from place `origin` to place `destination`."""

    first: Bytes
    origin: Places
    destination: Places
    low: Bytes
    high: Bytes


def at_once(tiles: Bytes, steps: int, step: int) -> Local:
    """All of it in one step. tiles: bytes as [i, g, j, h]."""
    servers, gpus = tiles.shape[:2]
    inside = tiles[np.arange(servers), :, np.arange(servers), :]
    i, g, h = np.nonzero(inside)
    first = np.zeros(steps + 1, np.int64)
    first[step + 1 :] = len(i)
    size = inside[i, g, h]
    return Local(first, (i * gpus + g).astype(np.int32), (i * gpus + h).astype(np.int32), np.zeros_like(size), size)


@compiled
def in_gaps(
    tiles: Bytes,
    first: Bytes,
    origin: Places,
    destination: Places,
    low: Bytes,
    high: Bytes,
    partners: Bytes,
    nic_bytes: float,
    nic_latency: float,
    intra_bytes: float,
    mesh: bool,
) -> tuple[Bytes, Places, Places, Bytes, Bytes]:
    """The fields of `Local`: in every step as much as fits beside balance, redistribution and cards, the rest last.

    Step t holds the balance of slot t, the cards of slot t − 1 and the redistribution of slot t − 2. A server's local
    traffic shrinks evenly, so that no pair of GPUs is left over.
    """
    servers, gpus, slots = tiles.shape[0], tiles.shape[1], len(partners)
    rest = np.zeros((servers, gpus, gpus), np.int64)
    for i in range(servers):
        rest[i] = tiles[i, :, i]
    whole, loads = rest.copy(), np.empty_like(rest)
    begin = np.zeros(slots + 3, np.int64)
    origins, destinations = np.empty(2 * rest.size, np.int32), np.empty(2 * rest.size, np.int32)
    lows, highs = np.empty(2 * rest.size, np.int64), np.empty(2 * rest.size, np.int64)
    count = 0
    for step in range(slots + 2):
        loads[:] = 0
        seconds = 0.0
        if step < slots:
            _add_balance(loads, step, first, origin, low, high)
        if 1 <= step <= slots:
            seconds = _cards(step - 1, servers * gpus, first, low, high) / nic_bytes + nic_latency
        if step >= 2:
            _add_redistribution(loads, step - 2, first, destination, low, high, partners)
        for i in range(servers):
            seconds = max(seconds, _busiest(loads[i], mesh) / intra_bytes)
        for i in range(servers):
            share = 1.0 if step == slots + 1 else _share(loads[i], rest[i], seconds * intra_bytes, mesh)
            if share < 1 and share * rest[i].sum() < _SMALLEST * whole[i].sum():
                continue
            if count + gpus * gpus > len(origins):
                origins, destinations = np.append(origins, origins), np.append(destinations, destinations)
                lows, highs = np.append(lows, lows), np.append(highs, highs)
            count = _take(share, i * gpus, whole[i], rest[i], origins, destinations, lows, highs, count)
        begin[step + 1] = count
    return begin, origins[:count].copy(), destinations[:count].copy(), lows[:count].copy(), highs[:count].copy()


@compiled
def _take(
    share: float,
    place: int,
    whole: Bytes,
    rest: Bytes,
    origins: Places,
    destinations: Places,
    lows: Bytes,
    highs: Bytes,
    count: int,
) -> int:
    """Write down a share of what is left of a server's traffic, its GPUs at `place` and after; the new count."""
    gpus = len(rest)
    for g in range(gpus):
        for h in range(gpus):
            amount = rest[g, h] if share >= 1 else int(share * rest[g, h])
            if amount > 0:
                origins[count], destinations[count] = place + g, place + h
                lows[count] = whole[g, h] - rest[g, h]
                highs[count] = lows[count] + amount
                rest[g, h] -= amount
                count += 1
    return count


@compiled
def _add_balance(loads: Bytes, slot: int, first: Bytes, origin: Places, low: Bytes, high: Bytes) -> None:
    """Bytes from their origins to the cards that send them in this slot."""
    servers, gpus = loads.shape[0], loads.shape[1]
    for place in range(servers * gpus):
        i, g = place // gpus, place % gpus
        card = slot * servers * gpus + place
        for piece in range(first[card], first[card + 1]):
            if origin[piece] != place:
                loads[i, origin[piece] % gpus, g] += high[piece] - low[piece]


@compiled
def _add_redistribution(
    loads: Bytes, slot: int, first: Bytes, destination: Places, low: Bytes, high: Bytes, partners: Bytes
) -> None:
    """Bytes from the cards that received them in this slot to their destinations."""
    servers, gpus = loads.shape[0], loads.shape[1]
    for place in range(servers * gpus):
        j, g = partners[slot, place // gpus], place % gpus
        card = slot * servers * gpus + place
        for piece in range(first[card], first[card + 1]):
            if destination[piece] % gpus != g:
                loads[j, g, destination[piece] % gpus] += high[piece] - low[piece]


@compiled
def _cards(slot: int, places: int, first: Bytes, low: Bytes, high: Bytes) -> int:
    """Bytes of the busiest card."""
    most = 0
    for card in range(slot * places, (slot + 1) * places):
        carried = 0
        for piece in range(first[card], first[card + 1]):
            carried += high[piece] - low[piece]
        most = max(most, carried)
    return most


@compiled
def _busiest(loads: Bytes, mesh: bool) -> int:
    """Bytes that bound the time of a server's fabric at `intra_bytes` a second."""
    gpus = len(loads)
    most = 0
    for g in range(gpus):
        most = max(most, loads[g].max() * (gpus - 1)) if mesh else max(most, loads[g].sum(), loads[:, g].sum())
    return most


@compiled
def _share(loads: Bytes, rest: Bytes, room: float, mesh: bool) -> float:
    """The part of `rest` that fits into `room` bytes a GPU and direction beside `loads`."""
    gpus = len(loads)
    share = 1.0
    for g in range(gpus):
        if mesh:
            for h in range(gpus):
                if rest[g, h] > 0:
                    share = min(share, (room / (gpus - 1) - loads[g, h]) / rest[g, h])
        else:
            if rest[g].sum() > 0:
                share = min(share, (room - loads[g].sum()) / rest[g].sum())
            if rest[:, g].sum() > 0:
                share = min(share, (room - loads[:, g].sum()) / rest[:, g].sum())
    return max(share, 0.0)
