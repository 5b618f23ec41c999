"""`rocm-smi --showtopo`: its blocks together make one machine."""

from __future__ import annotations

from fractions import Fraction

import pytest
from reader_texts import cables, fixture, read, read_text

from comm_plans.errors import TopologyError
from comm_plans.solve import solve

LINKS_ONLY = (
    "=== Link Type between two GPUs ===\nGPU0 GPU1 GPU2\nGPU0 0 XGMI PCIE\nGPU1 XGMI 0 PCIE\nGPU2 PCIE PCIE 0\n"
)


def test_hives_are_joined_by_the_way_between_sockets() -> None:
    topology = read("two_hives_showtopo.txt").topology
    ways = cables(topology)
    inside = {
        (f"GPU{one}", f"GPU{other}")
        for hive in (0, 4)
        for one in range(hive, hive + 4)
        for other in range(one + 1, hive + 4)
    }
    assert {ends for ends in ways if "GPU" in ends[1]} == inside
    assert all(ways[ends] == 50 for ends in inside)
    assert ways["node0", "node1"] == 16
    assert solve(topology, "all_gather").algbw == 32  # each hive's four shards of eight leave by 16 GB/s


def test_a_person_s_figure_for_a_link_or_for_the_sockets() -> None:
    ways = cables(read("two_hives_showtopo.txt", said={"XGMI": 64, "SYS": 36}).topology)
    assert ways["GPU0", "GPU3"] == 64
    assert ways["node0", "node1"] == 36


def test_one_block_is_enough_if_it_is_that_of_links() -> None:
    ways = cables(read_text(LINKS_ONLY))
    assert ways["GPU0", "GPU1"] == 50
    assert ways["GPU2", "node0"] == Fraction("31.5")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("Link Type between two GPUs", "Something else", "“Link Type between two GPUs” is missing"),
        ("GPU7   PCIE         ", "GPU7   XGMI         ", "GPU0 to GPU7 is SYS, and back it is XGMI"),
        ("GPU7   PCIE         ", "GPU7   QPI          ", "line 34: between GPU7 and GPU0 stands QPI"),
    ],
)
def test_a_fault_is_one_sentence(old: str, new: str, sentence: str) -> None:
    text = fixture("two_hives_showtopo.txt")
    assert old in text
    with pytest.raises(TopologyError, match=sentence):
        read_text(text.replace(old, new))


def test_noise_between_the_blocks_does_no_harm() -> None:
    text = fixture("two_hives_showtopo.txt").replace("\n\n", "\n\nWARNING: a GPU is in a low-power state\n\n")
    assert read_text(text).links == read("two_hives_showtopo.txt").topology.links
