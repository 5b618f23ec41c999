"""`ibnetdiscover`: hosts and switches, each cable once."""

from __future__ import annotations

from fractions import Fraction

import pytest
from reader_texts import cables, fixture, read, read_text

from comm_plans.errors import TopologyError
from comm_plans.solve import solve

LEAVES = "ibnetdiscover_two_leaves.txt"
PAIRS = """CA 21 1 0xa1 4x NDR - SW 11 1 0xe1 ( 'alpha mlx5_0' - 'leaf ' )
SW 11 1 0xe1 4x NDR - CA 21 1 0xa1 ( 'leaf ' - 'alpha mlx5_0' )
CA 22 1 0xb1 4x NDR - SW 11 2 0xe1 ( 'beta mlx5_0' - 'leaf ' )
SW 24 1 0xe9 4x SDR                                    'spare '
"""


def test_cables_count_once_and_parallel_ones_add_up() -> None:
    """Two cards of one host, a cable whose ends disagree, one on a single lane, one that is down."""
    reading = read(LEAVES)
    assert cables(reading.topology) == {
        ("alpha", "leaf1"): 50,
        ("beta", "leaf1"): 25,
        ("gamma", "leaf2"): Fraction("6.25"),
        ("leaf1", "leaf2"): Fraction("37.5"),
    }
    assert any("1 cable with one lane" in remark for remark in reading.remarks)
    assert solve(reading.topology, "all_gather").optimal


def test_the_short_form_is_the_same() -> None:
    assert cables(read_text(PAIRS)) == {("alpha", "leaf"): 50, ("beta", "leaf"): 50}


def test_a_person_s_figure_for_a_kind_of_cable() -> None:
    assert cables(read(LEAVES, said={"4xHDR": 24}).topology)["alpha", "leaf1"] == 48


def test_switches_of_one_name_are_told_apart() -> None:
    names = {switch.name for switch in read_text(fixture(LEAVES).replace("leaf2", "leaf1")).switches}
    assert names == {"leaf1 S-0000000000000e01", "leaf1 S-0000000000000e02"}


@pytest.mark.parametrize("text", ['Ca\t1 "H-0000000000000a01"\t\t# "alpha HCA-1"\n', PAIRS.splitlines()[-1]])
def test_a_host_without_a_cable_is_refused(text: str) -> None:
    with pytest.raises(TopologyError, match="no host in it has a cable that is up"):
        read_text(text)
