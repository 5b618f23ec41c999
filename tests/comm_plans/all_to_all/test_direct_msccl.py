"""MSCCL XML of timed schedules, executed on numbers with thread blocks taking turns at random."""

from __future__ import annotations

import numpy as np
import pytest
from direct_networks import gen_kautz, random_network, reference
from msccl_interpreter import run

from comm_plans.all_to_all.direct.msccl import all_to_all_xml
from comm_plans.all_to_all.direct.timed_flows import timed_all_to_all
from comm_plans.all_to_all.direct.timed_schedule import TimedSchedule
from comm_plans.errors import PlansError
from comm_plans.fabrics import fabric


def assert_exchanges(schedule: TimedSchedule, seed: int) -> None:
    text, report = all_to_all_xml(schedule)
    ranks = len(schedule.topology.ranks)
    assert report.chunks == ranks * schedule.chunks
    numbers = np.random.default_rng(seed).random((ranks, ranks, schedule.chunks))
    outputs = run(text, list(numbers.reshape(ranks, -1)), seed=seed)
    for rank, output in enumerate(outputs):
        np.testing.assert_array_equal(output, numbers[:, rank].ravel())


@pytest.mark.parametrize("name", ["ring4", "K4,4", "genkautz(8,2)", "torus4x4", "petersen", "torus4x4_cut(0,1)"])
def test_reference_networks(name: str) -> None:
    assert_exchanges(timed_all_to_all(reference(name)).schedule, seed=1)


@pytest.mark.parametrize("name", ["fat_tree:leaves=2", "dgx_a100", "star:ranks=36"])
def test_switches(name: str) -> None:
    assert_exchanges(timed_all_to_all(fabric(name), chunks=1).schedule, seed=2)


@pytest.mark.parametrize("seed", range(15))
def test_random_networks(seed: int) -> None:
    assert_exchanges(timed_all_to_all(random_network(seed, most=5), chunks=1 + seed % 5).schedule, seed)


def test_long_runs_of_chunks_are_cut() -> None:
    assert_exchanges(timed_all_to_all(fabric("ring:ranks=3"), chunks=150).schedule, seed=3)


def test_what_msccl_cannot_say() -> None:
    unequal = np.arange(9).reshape(3, 3)
    with pytest.raises(PlansError, match="send different amounts"):
        all_to_all_xml(timed_all_to_all(fabric("ring:ranks=3"), unequal).schedule)
    with pytest.raises(PlansError, match=r"chunks a loop.*cut the data into fewer chunks"):
        all_to_all_xml(timed_all_to_all(gen_kautz(8, 4), chunks=5000).schedule)
