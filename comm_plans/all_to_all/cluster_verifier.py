"""Replays the schedule of an all-to-all on a cluster and trusts nothing but its transfers.

Every byte leaves a rank that holds it, moves in one piece of time after another, and ends at its destination, once;
every card has one partner a slot, on its own rail, and sends no more than the slot allows.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from comm_plans.all_to_all.cluster import Bytes, Cluster
from comm_plans.all_to_all.replay import ARRIVED, NOT_HELD, replay
from comm_plans.all_to_all.schedule import Schedule, Transfers, chosen
from comm_plans.all_to_all.slots import Slots
from comm_plans.errors import PlanError

MOST_AT_ONCE = 4_000_000  # transfers whose replay is kept in memory


def verify_schedule(schedule: Schedule, traffic: Bytes) -> None:
    """Raise PlanError unless the schedule brings `traffic` (bytes from rank to rank) where it belongs."""
    cluster = schedule.cluster
    _check_partners(schedule.slots)
    moves = 0
    for number, step in enumerate(schedule.steps()):
        slot = number - schedule.lead
        weight = schedule.slots.weights[slot] if 0 <= slot < len(schedule.slots.weights) else 0
        _check_ranks(cluster, step, number)
        _check_cards(cluster, step, number, weight)
        moves += len(step.low)
    sizes = traffic.copy()
    np.fill_diagonal(sizes, 0)
    origins = max(1, cluster.ranks * MOST_AT_ONCE // max(moves, 1))
    for first in range(0, cluster.ranks, origins):
        _check_bytes(schedule.steps(), sizes[first : first + origins], first)


def _check_partners(slots: Slots) -> None:
    """In every slot every server sends to one and receives from one."""
    everyone = np.arange(slots.partners.shape[1])
    wrong = np.flatnonzero((np.sort(slots.partners, axis=1) != everyone).any(1) | (slots.weights <= 0))
    if len(wrong):
        raise PlanError(f"slot {wrong[0]} is no pairing of all servers with bytes to send")


def _check_ranks(cluster: Cluster, step: Transfers, number: int) -> None:
    """Every transfer is between ranks that exist, of what one has for another."""
    for name in ("source", "target", "origin", "destination"):
        ranks = getattr(step, name)
        wrong = np.flatnonzero((ranks < 0) | (ranks >= cluster.ranks))
        if len(wrong):
            raise PlanError(f"step {number}: the {name} of a transfer is rank {ranks[wrong[0]]}, which is not there")


def _check_cards(cluster: Cluster, step: Transfers, number: int, weight: int) -> None:
    """Each card sends to one and receives from one, of its own number, up to `weight` bytes."""
    out = cluster.server_of[step.source] != cluster.server_of[step.target]
    source, target = step.source[out], step.target[out]
    card = cluster.places % cluster.gpus
    off_rail = card[source] != card[target]
    if off_rail.any():
        first = off_rail.argmax()
        raise PlanError(f"step {number}: rank {source[first]} sends to rank {target[first]}, which is on another rail")
    size = (step.high - step.low)[out]
    for busy, other in ((source, target), (target, source)):
        carried = np.zeros(cluster.ranks, np.int64)
        np.add.at(carried, busy, size)
        partner = np.full(cluster.ranks, -1, np.int64)
        partner[busy] = other
        if (partner[busy] != other).any():
            raise PlanError(f"step {number}: rank {busy[(partner[busy] != other).argmax()]} has two partners at once")
        if carried.max() > weight:
            raise PlanError(f"step {number}: the card of rank {carried.argmax()} carries more than {weight} bytes")


def _check_bytes(steps: Iterator[Transfers], sizes: Bytes, first_origin: int) -> None:
    """Replay what the ranks from `first_origin` on send, `sizes` bytes as [origins, ranks]."""
    origins, ranks = sizes.shape
    moves, numbers = _of_origins(steps, first_origin, first_origin + origins)
    pair = (moves.origin.astype(np.int64) - first_origin) * ranks + moves.destination
    order = np.argsort(pair, kind="stable")
    first = np.zeros(origins * ranks + 1, np.int64)
    np.cumsum(np.bincount(pair, minlength=origins * ranks), out=first[1:])
    source, target, _, _, low, high = chosen(moves, order)
    fault, where, transfer = replay(first, numbers[order], source, target, low, high, sizes, first_origin)
    if fault == ARRIVED:
        return
    whose = f"of what rank {first_origin + where // ranks} has for rank {where % ranks}"
    if fault == NOT_HELD:
        raise PlanError(
            f"step {numbers[order][transfer]}: bytes {low[transfer]} to {high[transfer]} {whose} "
            f"leave rank {source[transfer]}, which does not hold them"
        )
    raise PlanError(f"not every byte {whose} arrives there")


def _of_origins(steps: Iterator[Transfers], first: int, end: int) -> tuple[Transfers, NDArray[np.int32]]:
    """All transfers of bytes from these ranks, and the step of each."""
    parts = [chosen(step, (step.origin >= first) & (step.origin < end)) for step in steps]
    numbers = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part.low) for part in parts])
    return Transfers(*map(np.concatenate, zip(*parts, strict=True))), numbers
