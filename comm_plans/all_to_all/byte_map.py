"""Which bytes travel in which slot: every network card sends what lies in its queue, as much as the slot allows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from comm_plans.all_to_all.balance import Numbers
from comm_plans.all_to_all.cluster import Bytes, Places
from comm_plans.compiled import compiled


class Pieces(NamedTuple):
    """What the cards send: pieces `first[c] … first[c + 1]` by card c = (x·S + i)·G + g, GPU g of server i in slot x.

    A piece is the bytes `low … high` of what the GPU at place `origin` has for the GPU at place `destination`.
    """

    first: Bytes
    origin: Places
    destination: Places
    low: Bytes
    high: Bytes


@compiled
def mapped(
    first: Bytes,
    origin: Numbers,
    destination: Numbers,
    start: Bytes,
    length: Bytes,
    partners: Bytes,
    weights: Bytes,
) -> tuple[Bytes, Places, Places, Bytes, Bytes]:
    """The fields of `Pieces`, from those of `Balanced` and from the slots' partners and weights."""
    slots, servers = partners.shape
    gpus = (len(first) - 1) // (servers * servers)
    most = len(origin) + slots * servers * gpus
    begin = np.zeros(slots * servers * gpus + 1, np.int64)
    origins, destinations = np.empty(most, np.int32), np.empty(most, np.int32)
    lows, highs = np.empty(most, np.int64), np.empty(most, np.int64)
    at, gone = first[:-1].copy(), np.zeros(len(first) - 1, np.int64)
    count, card = 0, 0
    for slot in range(slots):
        for i in range(servers):
            j = partners[slot, i]
            for g in range(gpus):
                queue, room = (i * servers + j) * gpus + g, weights[slot]
                while room > 0 and at[queue] < first[queue + 1]:
                    piece = at[queue]
                    amount = min(room, length[piece] - gone[queue])
                    origins[count], destinations[count] = i * gpus + origin[piece], j * gpus + destination[piece]
                    lows[count] = start[piece] + gone[queue]
                    highs[count] = lows[count] + amount
                    count += 1
                    room -= amount
                    gone[queue] += amount
                    if gone[queue] == length[piece]:
                        at[queue] += 1
                        gone[queue] = 0
                card += 1
                begin[card] = count
    return begin, origins[:count].copy(), destinations[:count].copy(), lows[:count].copy(), highs[:count].copy()
