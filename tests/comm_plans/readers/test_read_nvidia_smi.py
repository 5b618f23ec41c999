"""`nvidia-smi topo -m` in every shape in which it is pasted; what it becomes is compared with known fabrics."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from reader_texts import cables, fixture, matrix, read, read_text, read_texts, wrapped

from comm_plans.errors import TopologyError
from comm_plans.fabrics import fabric
from comm_plans.solve import solve


@pytest.mark.parametrize(
    ("names", "network", "same"),
    [
        (("dgx_a100.txt",), "switch", "dgx_a100"),
        (("dgx_a100.txt", "dgx_a100.txt"), "switch", "dgx_a100:boxes=2"),
        (("hgx_h100_no_nic_rows.txt",) * 3, "rails", "dgx_h100:boxes=3"),
        (("dgx1_v100.txt",), "switch", "dgx1_v100"),
    ],
)
def test_known_machines_become_the_fabric_of_their_data_sheet(names: tuple[str, ...], network: str, same: str) -> None:
    assert read(*names, network=network).topology.key == fabric(same).key


def test_what_is_read_is_solved() -> None:
    topology = read("dgx_a100.txt", "dgx_a100.txt").topology
    assert solve(topology, "all_gather").algbw == Fraction(1040, 3)
    assert list(topology.hosts) == ["dgx_a100", "dgx_a100-2"]


def test_storage_cards_take_no_part() -> None:
    remarks = " ".join(read("dgx_a100.txt", "dgx_a100.txt").remarks)
    assert "mlx5_3" in remarks
    assert "mlx5_4" not in remarks


def test_every_figure_that_the_text_does_not_hold_is_remarked_upon() -> None:
    remarks = read("dgx_a100.txt").remarks
    assert remarks == ("assuming 300 GB/s for NV12: lanes of 25, as an A100 has them (--bandwidth NV12=GB/S)",)


def test_a_person_s_figures_come_first_by_word_or_by_family() -> None:
    names = ("dgx_a100.txt", "dgx_a100.txt")
    reading = read(*names, said={"nv": 20, "mlx5_0": 10, "NIC": 12})
    ways = cables(reading.topology)
    assert ways["dgx_a100/GPU0", "dgx_a100/nvs0"] == 240
    assert ways["dgx_a100/GPU0", "network"] == 10
    assert ways["dgx_a100/GPU1", "network"] == 12
    assert not any("NV12" in remark or "mlx5" in remark for remark in reading.remarks)


def test_a_word_said_in_vain_is_refused_with_the_words_there_are() -> None:
    with pytest.raises(
        TopologyError, match=r"--bandwidth NV18: nothing here goes by that word; the words are NV, NV12$"
    ):
        read("dgx_a100.txt", said={"NV18": 900})


def test_a_model_named_beside_the_matrix_sets_the_speed_of_a_lane() -> None:
    ways = cables(read("a6000_bridge.txt").topology)
    assert ways["GPU0", "GPU1"] == Fraction("56.25")
    assert ways["GPU2", "node0"] == Fraction("31.5")


def test_colours_and_empty_cells_do_not_shift_columns() -> None:
    topology = read("gb200_underlined.txt").topology
    assert cables(topology) == {(f"GPU{gpu}", "nvs0"): 900 for gpu in range(4)}


def test_crossings_nest_as_sockets_and_bridges_do() -> None:
    """GPU0 stands alone on its socket; two pairs below one host bridge each share the other."""
    topology = read("five_gpus.txt").topology
    assert cables(topology) == {
        ("GPU0", "node0"): 16,
        ("GPU1", "phb0"): Fraction("31.5"),
        ("GPU2", "phb0"): Fraction("31.5"),
        ("GPU3", "phb1"): Fraction("31.5"),
        ("GPU4", "phb1"): Fraction("31.5"),
        ("node0", "phb1"): Fraction("31.5"),
        ("phb0", "node0"): Fraction("31.5"),
    }


def test_pairs_that_nvlink_joins_share_the_way_between_sockets() -> None:
    pairs = {(0, 1): "NV3", (2, 3): "NV3"}
    topology = read_text(matrix(4, pairs, "SYS", ["0-7", "0-7", "8-15", "8-15"]))
    assert cables(topology)["node0", "node1"] == 16


@pytest.mark.parametrize(
    ("gpus", "lanes", "ways"),
    [
        (4, 4, {("GPU0", "GPU1"): 100}),
        (4, 6, {("GPU0", "GPU1"): 150}),
        (4, 12, {("GPU0", "nvs0"): 300}),
        (16, 6, {("GPU0", "nvs0"): 150}),
    ],
)
def test_more_lanes_than_a_gpu_has_are_a_switch(gpus: int, lanes: int, ways: dict[tuple[str, str], int]) -> None:
    found = cables(read_text(matrix(gpus, {}, f"NV{lanes}")))
    assert found.items() >= ways.items()
    assert len(found) == (gpus if "nvs0" in str(ways) else gpus * (gpus - 1) // 2)


def _shapes(text: str) -> dict[str, str]:
    return {
        "as printed": text,
        "blanks": text.expandtabs(8),
        "two blanks": re.sub(r"\t+", "  ", text),
        "windows": text.replace("\n", "\r\n"),
        "doubled ends": text.replace("\n", "\r\r\n"),
        "quoted": "".join(f"> {line}\n" for line in text.splitlines()),
        "indented": "".join(f"    {line}\n" for line in text.splitlines()),
        "table": "".join(f"{line} | |\n" for line in text.splitlines()),
        "header stripped": text.lstrip(),
        "coloured": text.replace("NV12", "\x1b[1;32mNV12\x1b[0m"),
        "fenced, after a prompt": f"## Topology\n```\nuser@node:~$ nvidia-smi topo -m\n{text}```\n",
        "no diagonal blanks": text.replace(" X ", "X"),
        "glued": text.expandtabs(8).replace("mlx5_9  CPU", "mlx5_9CPU").replace("SYS     SYS", "SYSSYS"),
        "wrapped at 80": wrapped(text, 80),
        "wrapped within words": wrapped(text, 61),
        "no break space": text.expandtabs(8).replace("  ", "\u00a0 "),
    }


@pytest.mark.parametrize("shape", _shapes(""))
def test_every_shape_of_one_matrix_is_the_same_network(shape: str) -> None:
    topology = read_text(_shapes(fixture("dgx_a100.txt"))[shape])
    plain = read("dgx_a100.txt").topology
    assert (topology.ranks, topology.switches, topology.links) == (plain.ranks, plain.switches, plain.links)


def test_powershell_writes_utf_16() -> None:
    data = fixture("dgx_a100.txt").encode("utf-16")
    assert len(read_texts([("box.txt", data)]).topology.ranks) == 8


def test_old_words_and_more_than_one_matrix() -> None:
    text = matrix(2, {}, "SOC") + "\n" + matrix(4, {}, "PIX")
    reading = read_texts([("box.txt", text.encode())])
    assert cables(reading.topology) == {("GPU0", "GPU1"): 16}
    assert "more than one matrix" in reading.remarks[0]


def test_mig_parts_are_remarked_upon() -> None:
    text = (
        matrix(1, {}, "") + "\nGPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-0)\n  MIG 1g.5gb     Device  0: (UUID: MIG-0)\n"
    )
    assert any("MIG" in remark for remark in read_texts([("box.txt", text.encode())]).remarks)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("GPU3\tNV12", "GPU3\tQQ", r"line 5: between GPU3 and GPU0 stands QQ, which is no known kind of link"),
        ("GPU3\tNV12", "GPU3\tPIX", r"line 2 and line 5: GPU0 to GPU3 is NV12, and back it is PIX"),
        ("GPU3\tNV12", "GPU3\tOK", r"tells whether and not how"),
        ("GPU3\tNV12", "GPU3\t X ", r"X belongs between a device and itself"),
        ("GPU2\tNV12", "GPU22\tNV12", r"the row of GPU2 is missing"),
        ("\tGPU1\t", "\tGPU0\t", r"line 1 names GPU0 twice"),
        ("GPU3\tNV12", "\x1b[2AGPU3\tNV12", r"line 5 moves a terminal's cursor"),
        ("\tGPU0\tGPU1", "\tBOARD0\tBOARD1", r"line 2: rows of a matrix lack the header"),
        ("mlx5_3\tSYS", "mlx5_3\tNV12", r"between mlx5_3 and GPU0 stands NV12, which joins GPUs alone"),
        ("mlx5_3\tSYS", "mlx5_3\tPIX", r"GPU0 to mlx5_3 is SYS, and back it is PIX"),
    ],
)
def test_a_fault_is_one_sentence_that_names_the_line(old: str, new: str, sentence: str) -> None:
    text = fixture("dgx_a100.txt")
    assert old in text
    with pytest.raises(TopologyError, match=rf"^box\.txt: [^\n]*{sentence}[^\n]*$"):
        read_text(text.replace(old, new, 1))


def test_a_text_cut_anywhere_in_the_rows_of_gpus_is_refused() -> None:
    text = matrix(4, {}, "NV18", ["0-31"] * 4)
    whole = text.rindex("NV18")
    for end in range(text.index("GPU0", 5) + 8, whole):
        with pytest.raises(TopologyError, match=r"cut|missing|no known|back it is|header"):
            read_text(text[:end] if end % 2 else text[:end] + "\n")


def test_hosts_without_cards_or_with_other_counts_on_rails_are_refused() -> None:
    with pytest.raises(TopologyError, match="five_gpus shows no network card"):
        read("dgx_a100.txt", "five_gpus.txt")
    with pytest.raises(TopologyError, match="rails need equally many NICs"):
        read("dgx_a100.txt", "gb200_underlined.txt", network="rails")
