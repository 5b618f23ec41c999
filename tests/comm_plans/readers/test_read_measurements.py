"""Measured bandwidths: what was built is found again, and no pair is promised more than it reached."""

from __future__ import annotations

from fractions import Fraction
from io import BytesIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from reader_texts import cables, fixture, read, read_text, read_texts
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from comm_plans.errors import TopologyError
from comm_plans.topology import Topology


def saved(matrix: object) -> bytes:
    file = BytesIO()
    np.save(file, np.asarray(matrix))
    return file.getvalue()


def csv(matrix: NDArray[np.float64], names: list[str]) -> str:
    lines = ["," + ",".join(names)]
    lines += [",".join([name, *(f"{figure:.2f}" for figure in row)]) for name, row in zip(names, matrix, strict=True)]
    return "\n".join(lines) + "\n"


def test_p2p_test_with_peer_access_one_way() -> None:
    assert cables(read("p2p_four_gpus.txt").topology) == {(f"GPU{gpu}", "switch0"): 251 for gpu in range(4)}


def test_nvbandwidth_shows_two_sockets() -> None:
    topology = read("nvbandwidth_two_sockets.txt").topology
    ways = cables(topology)
    assert ways["switch0", "switch1"] == Fraction("20.2")
    assert {ends[1] for ends in ways if ends[0] in ("GPU0", "GPU1", "GPU2")} == {"switch0"}
    assert {ends[1] for ends in ways if ends[0] in ("GPU3", "GPU4", "GPU5")} == {"switch1"}


def test_hosts_on_unequal_ports_of_one_switch() -> None:
    ports = np.array([200.0, 200, 100, 50])
    names = ["node-a", "node-b", "node-c", "node-d"]
    topology = read_text(csv(np.minimum.outer(ports, ports), names))
    assert cables(topology) == {(name, "switch0"): port for name, port in zip(names, ports, strict=True)}


def test_a_mesh_that_no_tree_explains_gets_links_of_its_own() -> None:
    """Four GPUs in a ring at 50, and 10 across it by PCIe."""
    ring = np.array([[0, 50, 10, 50], [50, 0, 50, 10], [10, 50, 0, 50], [50, 10, 50, 0.0]])
    reading = read_texts([("ring.npy", saved(ring))])
    assert cables(reading.topology) == {
        (f"rank{one}", f"rank{other}"): 50 for one, other in ((0, 1), (0, 3), (1, 2), (2, 3))
    }
    assert "links of their own" in reading.remarks[0]


def test_the_slower_way_counts_where_a_pair_is_lopsided() -> None:
    reading = read_texts([("pair.npy", saved([[0, 40.0], [20.0, 0]]))])
    assert cables(reading.topology) == {("rank0", "rank1"): 20}
    assert any("faster one way" in remark for remark in reading.remarks)


@given(st.data())
@settings(max_examples=25)
def test_a_tree_of_switches_is_found_again_through_noise(data: st.DataObject) -> None:
    """Boxes of ranks at one speed, joined by slower uplinks: each pair alone moves what it was measured at."""
    boxes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4), label="ranks of each box")
    uplink = data.draw(st.integers(5, 50), label="uplink")
    inside = [data.draw(st.integers(2 * uplink, 400), label="inside") for _ in boxes]
    home = [box for box, ranks in enumerate(boxes) for _ in range(ranks)]
    true = np.array([[inside[one] if one == other else uplink for other in home] for one in home], np.float64)
    random = np.random.default_rng(data.draw(st.integers(0, 99), label="noise"))
    measured = true * random.uniform(0.985, 1.015, true.shape)
    topology = read_texts([("matrix.npy", saved(measured))]).topology
    for one in range(len(home)):
        for other in range(one):
            assert 0.9 * true[one, other] <= flow(topology, one, other) <= 1.06 * true[one, other]


def flow(topology: Topology, one: int, other: int) -> float:
    """GB/s that one pair alone can move, by scipy."""
    capacities = np.zeros((len(topology.nodes),) * 2, np.int32)
    for (source, target), bandwidth in topology.capacities.items():
        capacities[source, target] = round(bandwidth * 1000)
    return float(maximum_flow(csr_array(capacities), one, other).flow_value) / 1000


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (saved([[0, 1.0], [0, 0]]), "from rank1 to rank0 stands 0; give GB/s above zero"),
        (saved([[0, np.nan], [1, 0]]), "stands nan"),
        (saved([[0, -1.0], [1, 0]]), "stands -1"),
        (saved([1.0, 2.0]), "holds no matrix"),
        (saved([[0, 1, 2], [1, 0, 2.0]]), r"the shape \(2, 3\)"),
        (saved(np.array([["a", "b"], ["c", "d"]])), "holds no matrix"),
        (saved([[0, 1.0], [1.0, 0]])[:-4], "no .npy file of numbers, or cut"),
        (b"1,2\n3,4\n5,6\n", "row 1 of 3 has 2 figures"),
        (b",a,b\na,0,5\nb,,0\n", "from b to a stands nan"),
    ],
)
def test_a_fault_is_one_sentence(content: bytes, sentence: str) -> None:
    with pytest.raises(TopologyError, match=sentence):
        read_texts([("matrix", content)])


def test_output_that_is_cut_or_has_the_wrong_direction_is_refused() -> None:
    text = fixture("p2p_four_gpus.txt")
    with pytest.raises(TopologyError, match="line 21 is not row 3 of 4 figures"):
        read_text(text[: text.index("251.50") - 3])
    with pytest.raises(TopologyError, match="one way between GPUs"):
        read_text(text[text.index("Bidirectional") :])
