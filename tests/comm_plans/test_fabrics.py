"""Fabrics by name: those that the reference file also has are the same networks, and wrong words are explained."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from comm_plans.canonical import mapping_between
from comm_plans.errors import TopologyError
from comm_plans.fabrics import FABRICS, fabric
from comm_plans.sources import topology_from
from comm_plans.topology import Link, Switch, Topology

REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "forestcoll.json").read_text())["topologies"]

SAME = {
    "uni_ring5": "ring:ranks=5,directions=1",
    "bi_ring6": "ring:ranks=6",
    "path4": "path:ranks=4",
    "full_mesh5_c2": "full_mesh:ranks=5,bandwidth=2",
    "star8": "star:ranks=8,bandwidth=4",
    "torus3x3": "torus:shape=3x3",
    "torus4x4": "torus:shape=4x4",
    "hypercube3": "hypercube:dimensions=3",
    "dgx_2x8": "dgx_a100:boxes=2",
    "dgx_4x8": "dgx_a100:boxes=4",
    "repo_a100_1box": "dgx_a100:boxes=1",
    "dgxh100_rail_2x8": "dgx_h100:boxes=2",
    "dgx1_v100_1box": "dgx1_v100:boxes=1,nvlink=1",
    "dgx1_v100_2box": "dgx1_v100:boxes=2,nvlink=1,nic=1",
    "repo_mi250_1box": "mi250:boxes=1",
    "repo_mi250_2x8": "mi250:boxes=2,gcds=8",
    "fat_tree_2x4_os2": "fat_tree:leaves=2,ranks=4,spines=1,oversubscription=2,bandwidth=2",
    "two_gpu": "path:ranks=2,bandwidth=3",
}


def reference(name: str) -> Topology:
    entry = REFERENCE[name]
    links = tuple(Link(one, other, Fraction(capacity)) for one, other, capacity in entry["edges"])
    return Topology(name, tuple(entry["compute"]), tuple(map(Switch, entry["switch"])), links)


@pytest.mark.parametrize("name", SAME)
def test_the_reference_networks(name):
    expected, made = reference(name), fabric(SAME[name])
    mapping = mapping_between(expected, made)
    assert mapping is not None
    moved = {(mapping[one], mapping[other]): capacity for (one, other), capacity in expected.capacities.items()}
    assert moved == made.capacities


@pytest.mark.parametrize("name", FABRICS)
def test_every_fabric_has_sensible_defaults(name):
    topology = fabric(name)
    assert topology.name == name
    assert len(topology.ranks) >= 4
    both_ways = {(other, one): bandwidth for (one, other), bandwidth in topology.capacities.items()}
    assert both_ways == topology.capacities


def test_sizes_follow_from_parameters():
    assert len(fabric("dgx_a100:boxes=128").ranks) == 1024
    assert len(fabric("dgx_h100:boxes=3").switches) == 3 + 8
    assert len(fabric("nvl").ranks) == 72
    assert len(fabric("mi250:boxes=2").ranks) == 32
    assert len(fabric("torus:shape=2x3x4").links) == 2 * (12 + 24 + 24)
    assert fabric("torus:shape=2x2x2").capacities.keys() == fabric("hypercube:dimensions=3").capacities.keys()
    dragonfly = fabric("dragonfly:groups=4,routers=3,ranks=2")
    assert (len(dragonfly.ranks), len(dragonfly.switches)) == (24, 12)
    assert len(dragonfly.links) == 2 * (24 + 4 * 3 + 6)
    assert list(fabric("dgx_a100:boxes=2").hosts) == ["box0", "box1"]


def test_bandwidths_are_exact():
    assert fabric("ring:bandwidth=24.6").links[0].bandwidth == Fraction(123, 5)
    assert {link.bandwidth for link in fabric("ring:bandwidth=13/3").links} == {Fraction(13, 3)}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("dgx_b100", "no fabric 'dgx_b100'; the fabrics are dgx1_v100, dgx_a100"),
        (
            "dgx_a100:box=2",
            "dgx_a100 does not take 'box=2' as one of its parameters; it takes boxes=1, nvlink=300, nic=25",
        ),
        ("dgx_a100:boxes=2,boxes=3", "more than once"),
        ("dgx_a100:boxes", "'' is not a whole number"),
        ("dgx_a100:boxes=0", "'0' is not a whole number of 1 to 4096"),
        ("dgx_a100:boxes=1.5", "'1.5' is not a whole number"),
        ("dgx_a100:boxes=4096", "more than the 4096 nodes"),
        ("dgx_a100:nic=-1", "-1 is not above zero"),
        ("dgx_a100:nic=nan", "'nan' is not a number"),
        ("mi250:gcds=12", "gcds=16 or gcds=8"),
        ("torus:shape=4x", "a shape such as 4x4x2"),
        ("torus:shape=4096x4096", "a shape such as 4x4x2"),
        ("hypercube:dimensions=13", "more than 4096 nodes"),
        ("ring:directions=3", "1 or 2 directions"),
        ("ring:bandwidth=1e12", "g0 → g1: bandwidth"),
    ],
)
def test_wrong_words_are_explained(text, sentence):
    with pytest.raises(TopologyError) as caught:
        fabric(text)
    assert sentence in str(caught.value)


def test_one_place_decides_what_a_word_means(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fabric("path:ranks=3").save(tmp_path / "ring")
    assert len(topology_from("ring").ranks) == 8
    assert len(topology_from("./ring").ranks) == 3
    assert len(topology_from(str(tmp_path / "ring")).ranks) == 3
    with pytest.raises(TopologyError, match="neither a file nor a fabric"):
        topology_from("rings")
    with pytest.raises(TopologyError, match=r"cluster\.yaml cannot be read"):
        topology_from("cluster.yaml")
