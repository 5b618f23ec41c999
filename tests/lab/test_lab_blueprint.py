"""What a topology file becomes before anything is made, and what cannot be built. No root needed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab.blueprint import blueprint, digest
from lab.ends import ends, find_link
from lab.rates import parse_rate, shown_rate
from lab.report import reachability, report
from lab.state_file import claim, save

from comm_plans import Topology
from comm_plans.lab_state import LabError, LabState


def written(folder: Path, text: str) -> Path:
    file = folder / "topology.yaml"
    file.write_text(text)
    return file


def test_rates_of_the_shipped_star(star: Path) -> None:
    lab = blueprint(star)
    assert {link.ends[0]: link.rates for link in lab.links} == {
        "h0": (200_000_000, 200_000_000),
        "h1": (200_000_000, 200_000_000),
        "h2": (100_000_000, 100_000_000),
        "h3": (50_000_000, 50_000_000),
    }


def test_every_name_address_and_interface_is_used_once(shipped: Path) -> None:
    lab = blueprint(shipped, managed=True)
    assert lab.management
    names = [node.namespace for node in (*lab.nodes, lab.management)]
    addresses = [node.address for node in (*lab.nodes, lab.management)]
    addresses += [str(node.management_address) for node in lab.nodes]
    interfaces = [(end.node.namespace, end.interface) for end in ends(lab)]
    for each in (names, addresses, interfaces):
        assert len(set(each)) == len(each)
    assert len({name[:10] for name in names}) == 1  # the lab's own prefix
    assert len(lab.management.interface) <= 15  # what the kernel takes


def test_a_rate_of_its_own_for_each_direction(tmp_path: Path) -> None:
    lab = blueprint(written(tmp_path, "{ranks: [a, b], links: [[b, a, 0.002], [a, b, 0.001]]}"))
    assert [(end.node.name, end.peer.name, end.rate) for end in ends(lab)] == [
        ("a", "b", 8_000_000),
        ("b", "a", 16_000_000),
    ]


def test_names_that_no_namespace_could_have(tmp_path: Path) -> None:
    lab = blueprint(written(tmp_path, 'ranks: ["a b/c", "ü"]\ncables: [["a b/c", "ü", 0.001]]'))
    assert all(set(node.namespace) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_.") for node in lab.nodes)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{ranks: [a, b], links: [[a, b, 1]]}", "link a → b has no way back"),
        ("{ranks: [a, b], cables: [[a, b, 1e-12]]}", r"link a → b of 1e-12 GB/s cannot be shaped; use 1 kbit/s to"),
        ("{ranks: [a, b], cables: [[a, b, 300]]}", "cannot be shaped"),
        (json.dumps({"ranks": [str(rank) for rank in range(300)]}), "300 nodes are more than the 250"),
    ],
)
def test_what_cannot_be_built_is_a_sentence(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(LabError, match=words):
        blueprint(written(tmp_path, text))


@given(st.integers(1, 10**5))
def test_a_rate_is_the_same_in_every_unit(megabits: int) -> None:
    rate = megabits * 10**6
    assert parse_rate(f"{megabits}mbit") == parse_rate(f"{megabits * 1000}kbit") == rate
    assert parse_rate(str(megabits / 8000)) == rate


def test_rates_as_people_read_them() -> None:
    assert [shown_rate(rate) for rate in (1500, 75_000_000, 2 * 10**9)] == ["1.5 kbit/s", "75 Mbit/s", "2 Gbit/s"]


@pytest.mark.parametrize("text", ["", "fast", "10 mbit/s", "-1mbit", "nan", "1..2", "0", "1tbit"])
def test_what_is_no_rate_is_a_sentence(text: str) -> None:
    with pytest.raises(LabError, match=r"is no rate; write 10mbit|cannot be shaped"):
        parse_rate(text)


def test_a_rate_beyond_all_measure_is_told_as_it_was_written() -> None:
    with pytest.raises(LabError, match="a rate of 1e300gbit cannot be shaped; use 1 kbit/s to 100 Gbit/s"):
        parse_rate("1e300gbit")


def test_links_are_found_in_either_order_and_with_dashes_in_names(tmp_path: Path) -> None:
    lab = blueprint(written(tmp_path, "{ranks: [a-1, b], cables: [[a-1, b, 0.001]]}"))
    assert find_link(lab, "a-1-b") == find_link(lab, "b-a-1") == lab.links[0]
    with pytest.raises(LabError, match=r"a-b is no link of .*, such as a-1-b"):
        find_link(lab, "a-b")


def test_a_link_that_could_be_two_is_refused(tmp_path: Path) -> None:
    lab = blueprint(written(tmp_path, "{ranks: [a, a-b, b-c, c], cables: [[a, b-c, 1], [a-b, c, 1], [c, a, 1]]}"))
    with pytest.raises(LabError, match=r"a-b-c names 2 links of .*; give its nodes names without -"):
        find_link(lab, "a-b-c")


def test_the_state_is_read_back_as_it_was_written(shipped: Path, own_state: Path) -> None:
    lab = blueprint(shipped, managed=True)
    claim(lab)
    assert LabState.load() == lab
    with pytest.raises(LabError, match="a lab is up already"):
        claim(lab)
    assert sorted(own_state.parent.iterdir()) == [own_state]
    assert save(lab) == LabState.load()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"ranks": 3}', "\x00"])
def test_a_state_that_is_none_is_a_sentence(own_state: Path, text: str) -> None:
    own_state.write_text(text)
    with pytest.raises(LabError, match="is no state of a network lab"):
        LabState.load()


def test_no_lab_is_a_sentence() -> None:
    with pytest.raises(LabError, match=r"no network lab is up .* start one with network_lab.py up FILE"):
        LabState.load()


def test_the_digest_is_of_what_the_file_says(tmp_path: Path, star: Path) -> None:
    spaced = written(tmp_path, star.read_text().replace("# Four", "# Some four").replace("0.025", "0.0250"))
    assert digest(Topology.load(spaced)) == blueprint(star).digest
    other = written(tmp_path, star.read_text().replace("0.025", "0.026"))
    assert digest(Topology.load(other)) != blueprint(star).digest


def test_rates_that_only_processors_limit_are_remarked_on(tmp_path: Path, star: Path) -> None:
    fast = written(tmp_path, "{ranks: [a, b], cables: [[a, b, 12]]}")
    assert "more than one machine moves" in report(blueprint(fast))
    assert "more than one machine moves" not in report(blueprint(star))


def test_parts_of_a_network(tmp_path: Path) -> None:
    lab = blueprint(written(tmp_path, "{ranks: [a, b, c, d], cables: [[a, b, 0.001], [c, d, 0.001]]}"))
    assert reachability(lab) == "the ranks are in 2 parts now: a, b | c, d"
