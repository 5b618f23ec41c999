"""Balance inside the sending servers: every GPU gets an equal share of what its server sends to each other server.

Source: arXiv 2505.09764; donors, takers and final destinations are scanned in the order of the published scheduler, or
spread out: each donor begins with the takers after it, each taker with the bytes whose destination has its own number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from comm_plans.all_to_all.cluster import Bytes
from comm_plans.compiled import compiled

Numbers = NDArray[np.int16]
"""GPUs by their number in the server."""


class Balanced(NamedTuple):
    """What lies at each sender, in sending order: pieces `first[q] … first[q + 1]` at queue q = (i·S + j)·G + g, those
    that GPU g of server i sends to server j. A piece is a range of bytes of one origin for one destination GPU."""

    first: Bytes
    origin: Numbers
    destination: Numbers
    start: Bytes
    length: Bytes


@compiled
def balanced(tiles: Bytes, quota: Bytes, rails: Bytes, spread: bool) -> tuple[Bytes, Numbers, Numbers, Bytes, Bytes]:
    """The fields of `Balanced`. tiles: bytes as [i, g, j, h]; quota: bytes each of the first `rails[i, j]` GPUs of
    server i sends to server j; spread: see above."""
    servers, gpus = tiles.shape[0], tiles.shape[1]
    most = 2 * (np.count_nonzero(tiles) + servers * servers * gpus)
    first = np.zeros(servers * servers * gpus + 1, np.int64)
    origins, destinations = np.empty(most, np.int16), np.empty(most, np.int16)
    starts, lengths = np.empty(most, np.int64), np.empty(most, np.int64)
    moved, offset = np.zeros((gpus, gpus, gpus), np.int64), np.zeros((gpus, gpus, gpus), np.int64)
    used, room = np.zeros((gpus, gpus), np.int64), np.zeros(gpus, np.int64)
    count, queue = 0, 0
    for i in range(servers):
        for j in range(servers):
            if quota[i, j] > 0:
                _move(tiles[i, :, j], quota[i, j], rails[i, j], spread, moved, offset, used, room)
            for g in range(gpus):
                if quota[i, j] > 0:
                    turn = g if spread else 0
                    for place in range(gpus):
                        h = (turn + place) % gpus
                        for number in range(gpus):
                            origin = (turn + number) % gpus
                            if moved[g, h, origin] > 0:
                                origins[count], destinations[count] = origin, h
                                starts[count], lengths[count] = offset[g, h, origin], moved[g, h, origin]
                                count += 1
                queue += 1
                first[queue] = count
    return first, origins[:count], destinations[:count], starts[:count], lengths[:count]


@compiled
def _move(
    own: Bytes, quota: int, rails: int, spread: bool, moved: Bytes, offset: Bytes, used: Bytes, room: Bytes
) -> None:
    """Who holds what of `own` (bytes as [g, h]) after the balance: moved[g, h, origin] bytes from `offset` on."""
    gpus = len(own)
    moved[:], used[:] = 0, 0
    for g in range(gpus):
        room[g] = (quota if g < rails else 0) - own[g].sum()
    for donor in range(gpus):
        for place in range(gpus):
            if room[donor] >= 0:
                break
            taker = (donor + 1 + place) % gpus if spread else place
            if room[taker] <= 0:
                continue
            for number in range(gpus):
                h = (taker + number) % gpus if spread else number
                amount = min(-room[donor], own[donor, h] - used[donor, h], room[taker])
                if amount > 0:
                    moved[taker, h, donor], offset[taker, h, donor] = amount, used[donor, h]
                    used[donor, h] += amount
                    room[donor] += amount
                    room[taker] -= amount
    for g in range(gpus):
        for h in range(gpus):
            moved[g, h, g], offset[g, h, g] = own[g, h] - used[g, h], used[g, h]
