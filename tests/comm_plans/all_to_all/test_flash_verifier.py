"""The cluster verifier: what is wrong is found, whatever else is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from comm_plans.all_to_all.cluster import Cluster
from comm_plans.all_to_all.cluster_verifier import verify_schedule
from comm_plans.all_to_all.flash import pipelined, published
from comm_plans.all_to_all.schedule import Schedule, Transfers
from comm_plans.all_to_all.workloads import workload
from comm_plans.errors import PlanError

CLUSTER = Cluster((4,) * 3, 450, 50)
TRAFFIC = workload("random", 3, 4)


@dataclass(frozen=True)
class Tampered(Schedule):
    """A schedule whose steps were changed on the way."""

    change: Callable[[list[Transfers]], None] = lambda steps: None

    def steps(self) -> Iterator[Transfers]:
        steps = [Transfers(*(column.copy() for column in step)) for step in super().steps()]
        self.change(steps)
        return iter(steps)


def tampered(schedule: Schedule, change: Callable[[list[Transfers]], None]) -> Tampered:
    return Tampered(**{name: getattr(schedule, name) for name in schedule.__dataclass_fields__}, change=change)


def without(step: Transfers, entry: int) -> Transfers:
    return Transfers(*(np.delete(column, entry) for column in step))


def lose_a_transfer(steps: list[Transfers]) -> None:
    steps[-1] = without(steps[-1], 0)


def lose_a_byte(steps: list[Transfers]) -> None:
    steps[-1].low[0] += 1


def send_twice(steps: list[Transfers]) -> None:
    steps[-1] = Transfers(*(np.concatenate((column, column[:1])) for column in steps[-1]))


def send_too_early(steps: list[Transfers]) -> None:
    steps[-2], steps[-1] = steps[-1], steps[-2]


def forward_in_the_same_step(steps: list[Transfers]) -> None:
    steps[-2] = Transfers(*map(np.concatenate, zip(steps[-2], steps[-1], strict=True)))
    steps[-1] = Transfers(*(column[:0] for column in steps[-1]))


def send_beyond_the_end(steps: list[Transfers]) -> None:
    steps[-1].high[0] += 1


def send_nothing(steps: list[Transfers]) -> None:
    steps[-1].high[0] = steps[-1].low[0]


def deliver_to_a_neighbour(steps: list[Transfers]) -> None:
    steps[-1].target[0] ^= 1


def swap_origins(steps: list[Transfers]) -> None:
    steps[2].origin[0] ^= 1


def name_the_pair_by_another(steps: list[Transfers]) -> None:
    """As places in a table the pairs (o, d) and (o − 1, d + N) are one."""
    entry = np.flatnonzero(steps[-1].origin > 0)[0]
    steps[-1].origin[entry] -= 1
    steps[-1].destination[entry] += CLUSTER.ranks


def receive_nowhere(steps: list[Transfers]) -> None:
    steps[-1].target[0] = -1


@pytest.mark.parametrize("plan", [published, pipelined])
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lose_a_transfer, "not every byte of what rank"),
        (lose_a_byte, "not every byte of what rank"),
        (send_twice, "does not hold them"),
        (send_too_early, r"is on another rail|carries more|does not hold them"),
        (forward_in_the_same_step, "does not hold them"),
        (send_beyond_the_end, "does not hold them"),
        (send_nothing, "does not hold them"),
        (deliver_to_a_neighbour, "not every byte of what rank"),
        (swap_origins, r"does not hold them|not every byte"),
        (name_the_pair_by_another, r"step \d+: the destination of a transfer is rank \d+, which is not there"),
        (receive_nowhere, "the target of a transfer is rank -1, which is not there"),
    ],
)
def test_wrong_transfers_are_found(plan, change, sentence):
    schedule = plan(CLUSTER, TRAFFIC)
    verify_schedule(tampered(schedule, lambda steps: None), TRAFFIC)
    with pytest.raises(PlanError, match=sentence):
        verify_schedule(tampered(schedule, change), TRAFFIC)


def leave_the_rail(step: Transfers, out: np.ndarray) -> None:
    step.target[np.flatnonzero(out)[0]] ^= 1


def talk_to_two(step: Transfers, out: np.ndarray) -> None:
    entry = np.flatnonzero(out)[0]
    third = 3 - CLUSTER.server_of[step.source[entry]] - CLUSTER.server_of[step.target[entry]]
    step.target[entry] = 4 * third + step.target[entry] % 4


@pytest.mark.parametrize(
    ("change", "sentence"), [(leave_the_rail, "on another rail"), (talk_to_two, "two partners at once")]
)
def test_cards_keep_to_their_rail_and_partner(change, sentence):
    schedule = published(CLUSTER, TRAFFIC)

    def changed(steps: list[Transfers]) -> None:
        step = steps[schedule.lead]
        change(step, CLUSTER.server_of[step.source] != CLUSTER.server_of[step.target])

    with pytest.raises(PlanError, match=sentence):
        verify_schedule(tampered(schedule, changed), TRAFFIC)


def test_a_stage_carries_no_more_than_its_weight():
    schedule = published(CLUSTER, TRAFFIC)
    lighter = schedule.slots._replace(weights=schedule.slots.weights - 1)
    with pytest.raises(PlanError, match="carries more than"):
        verify_schedule(replace(schedule, slots=lighter), TRAFFIC)


def test_a_stage_pairs_every_server():
    schedule = published(CLUSTER, TRAFFIC)
    partners = schedule.slots.partners.copy()
    partners[0, 0] = partners[0, 1]
    with pytest.raises(PlanError, match="slot 0 is no pairing of all servers"):
        verify_schedule(replace(schedule, slots=schedule.slots._replace(partners=partners)), TRAFFIC)


def test_other_traffic_is_not_what_was_planned():
    schedule = published(CLUSTER, TRAFFIC)
    more = TRAFFIC.copy()
    more[0, 5] += 1
    with pytest.raises(PlanError, match="not every byte of what rank 0 has for rank 5 arrives there"):
        verify_schedule(schedule, more)


def test_large_schedules_are_replayed_in_parts(monkeypatch):
    monkeypatch.setattr("comm_plans.all_to_all.cluster_verifier.MOST_AT_ONCE", 100)
    verify_schedule(pipelined(CLUSTER, TRAFFIC), TRAFFIC)
    with pytest.raises(PlanError, match="not every byte of what rank"):
        verify_schedule(tampered(pipelined(CLUSTER, TRAFFIC), lose_a_transfer), TRAFFIC)
