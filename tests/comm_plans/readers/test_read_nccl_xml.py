"""NCCL's topology XML: the tree, its links, its cards, and all that must not be let in."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from reader_texts import cables, fixture, read, read_text, read_texts

from comm_plans.errors import TopologyError

H100 = "nccl_h100_four.xml"
DIES = "rccl_four_dies.xml"
CLOUD = "cloud_skeleton.xml"


def test_lanes_to_several_nvswitches_are_one_switch() -> None:
    assert cables(read(H100).topology) == {(f"GPU{gpu}", "nvs"): 450 for gpu in range(4)}


def test_hosts_are_joined_by_the_cards_behind_each_gpu_s_own_bridge() -> None:
    ways = cables(read(H100, H100).topology)
    assert ways["nccl_h100_four/GPU0", "network"] == 50
    rails = cables(read(H100, H100, network="rails").topology)
    assert {ends[1] for ends in rails if "rail" in ends[1]} == {f"rail{rail}" for rail in range(4)}


def test_pcie_that_is_slower_than_its_card_limits_it() -> None:
    text = fixture(H100).replace('link_width="16"', 'link_width="4"').encode()
    ways = cables(read_texts([("one.xml", text), ("two.xml", text)]).topology)
    assert ways["one/GPU0", "network"] == Fraction("15.75")  # 4 lanes of PCIe 5.0


def test_ranks_are_numbered_as_nccl_numbered_them() -> None:
    """Infinity Fabric by its number of links; the ranks of this file run against its order."""
    assert cables(read(DIES).topology) == {
        ("GPU0", "GPU1"): 200,
        ("GPU0", "GPU2"): 50,
        ("GPU1", "GPU3"): 50,
        ("GPU2", "GPU3"): 200,
    }


def test_a_card_that_a_container_shows_below_two_sockets_is_one() -> None:
    topology = read(DIES, DIES).topology
    leaving = [bandwidth for ends, bandwidth in cables(topology).items() if "network" in ends]
    assert sum(leaving) == 2 * Fraction("1.25")


def test_a_file_without_gpu_elements_goes_by_the_classes_of_devices() -> None:
    reading = read(CLOUD)
    assert cables(reading.topology)["GPU0", "pci0"] == Fraction("31.5")
    assert "does not tell NVLink" in reading.remarks[0]


def test_nvlink_that_a_file_does_not_tell_can_be_said() -> None:
    topology = read(CLOUD, CLOUD, said={"NVLINK": 300, "NIC": 20}).topology
    ways = cables(topology)
    assert ways["cloud_skeleton/GPU0", "cloud_skeleton/nvs"] == 300
    assert ways["cloud_skeleton/GPU0", "network"] == 20


@pytest.mark.parametrize(
    ("speed", "uplink"),
    [("2.5 GT/s", 4), ("5.0 GT/s PCIe", 8), ("8 GT/s", Fraction("15.75")), ("32.0 GT/s", 63), ("", Fraction("15.75"))],
)
def test_pcie_speeds_as_data_sheets_round_them(speed: str, uplink: Fraction) -> None:
    text = re.sub(r"<(nvlink|/nvlink).*?/>", "", fixture(H100)).replace("32.0 GT/s PCIe", speed)
    topology = read_text(text)
    assert max(bandwidth for ends, bandwidth in cables(topology).items() if "GPU0" in ends) == uplink


def test_a_cpu_between_nvlinks_is_reached_by_them() -> None:
    """A POWER9 machine: each pair of GPUs has three lanes to each other and three to its CPU."""
    text = '<system version="1">'
    for cpu in range(2):
        text += f'<cpu numaid="{cpu}" arch="ppc64" vendor="IBM">'
        for gpu in range(2 * cpu, 2 * cpu + 2):
            links = f'<nvlink target="0000:0{gpu ^ 1}:00.0" count="3" tclass="0x030200"/>'
            links += '<nvlink target="0000:0a:00.0" count="3" tclass="0x068001"/>'
            element = f'<gpu dev="{gpu}" sm="70" rank="{gpu}">{links}</gpu>'
            text += f'<pci busid="0000:0{gpu}:00.0" class="0x030200">{element}</pci>'
        text += "</cpu>"
    ways = cables(read_text(text + "</system>"))
    assert ways["GPU0", "GPU1"] == 75
    assert ways["GPU0", "cpu0"] == 75
    assert ways["cpu0", "cpu1"] == 32


def test_parts_of_one_gpu_share_its_links() -> None:
    text = fixture(H100)
    gpu = re.search(r'<gpu dev="0".*?</gpu>', text, re.DOTALL)
    assert gpu
    again = gpu[0].replace('rank="0"', 'rank="9"')
    topology = read_text(text.replace(gpu[0], gpu[0] + again))
    (device,) = {end for ends in cables(topology) for end in ends if end.startswith("device")}
    assert len(topology.ranks) == 5
    assert sum(value for ends, value in cables(topology).items() if set(ends) == {device, "nvs"}) == 450


def test_several_hosts_in_one_file_are_joined_by_the_switch_they_share() -> None:
    def tray(number: int) -> str:
        link = '<nvlink target="fffffff:ff:ff.0" count="18" tclass="0x068000"/>'
        gpu = f'<gpu dev="0" sm="100" rank="{number}">{link}</gpu>'
        net = '<nic><net name="ib0" dev="0" speed="400000"/></nic>'
        pci = f'<pci busid="0000:01:00.0" class="0x030200" link_speed="64.0 GT/s PCIe" link_width="16">{gpu}</pci>'
        return f'<cpu host_hash="0x{number}" numaid="0" arch="arm64">{pci}{net}</cpu>'

    topology = read_text(f'<system version="1">{tray(0)}{tray(1)}</system>')
    assert topology.hosts == {"host0": ("GPU0",), "host1": ("GPU1",)}
    assert cables(topology)["GPU0", "nvs"] == 900
    assert cables(topology)["GPU1", "network"] == 50


def test_what_a_person_should_look_at_is_remarked_upon() -> None:
    fast = read_texts([("a.xml", fixture(H100).replace('speed="400000"', 'speed="400000000"').encode())])
    assert any("mlx5_0 has speed=400000000" in remark for remark in fast.remarks)
    down = re.sub(r'(<gpu dev="1"[^>]*>).*?</gpu>', r"\1</gpu>", fixture(H100), flags=re.DOTALL)
    assert any("GPU1 shows no fast link" in remark for remark in read_texts([("a.xml", down.encode())]).remarks)
    lost = fixture(DIES).replace('target="0000:c3:00.0"', 'target="0000:e7:00.0"').replace('target="0000:c2:00.0"', "")
    with pytest.raises(TopologyError, match="lanes"):
        read_text(lost)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("<system", '<!DOCTYPE system [<!ENTITY a "b">]><system', "line 2: a DOCTYPE is not read"),
        ("</system>", "", "still open; give the whole file, it looks cut"),
        ("</cpu>\n</system>", "</system>", "mismatched tag"),
        ('count="4"', 'count="many"', "<xgmi> has count='many', which is no whole number"),
        ('count="4"', 'count="5"', "GPU3 tells 5 lanes to GPU2, which tells 4 back"),
        ('link_width="16"', 'link_width="x16"', "<pci> has link_width='x16'"),
        ('<system version="2">', '<graphs version="1">', "what NCCL searched out"),
        ("system", "topology", "it begins with <topology>"),
    ],
)
def test_a_fault_is_one_sentence(old: str, new: str, sentence: str) -> None:
    text = "<!-- a comment -->\n" + fixture(DIES)
    assert old in text
    text = text.replace(old, new) if old == "system" else text.replace(old, new, 1)
    if old == '<system version="2">':
        text = text.replace("</system>", "</graphs>")
    with pytest.raises(TopologyError, match=sentence) as caught:
        read_text(text)
    assert "\n" not in str(caught.value)


def test_a_file_that_only_orders_bus_numbers_names_no_gpu() -> None:
    with pytest.raises(TopologyError, match="it names no GPU"):
        read_text('<system version="1"><cpu numaid="0"><pci busid="0000:00:16.0"/></cpu></system>')


def test_what_is_too_large_or_too_deep_is_refused() -> None:
    with pytest.raises(TopologyError, match="more than 4096 elements, or 64 levels"):
        read_text("<system>" + "<cpu/>" * 5000 + "</system>")
    with pytest.raises(TopologyError, match="more than 4096 elements, or 64 levels"):
        read_text("<system>" + "<pci>" * 100 + "</pci>" * 100 + "</system>")
    with pytest.raises(TopologyError, match="larger than 1 MB"):
        read_text("<system>" + " " * 1_000_000 + "</system>")


def test_prompts_and_declarations_around_the_file_do_no_harm() -> None:
    text = '$ cat topo.xml\n<?xml version="1.0"?>\n' + fixture(DIES).replace("  <", "\t<") + "$ \n"
    assert read_text(text).links == read(DIES).topology.links
