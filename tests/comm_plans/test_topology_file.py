"""The topology file: every form of it, exact decimals, and one sentence for each way to get it wrong."""

import json
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comm_plans import Topology
from comm_plans.errors import TopologyError

EVERY_FORM = """
name: two-boxes
ranks: [0, g1, no]
switches: [sw0, {name: sw1, multicast: true, reduces: true}, {name: sw2}]
hosts: {box0: [0, g1]}
links:
  - [0, g1, 24.6]
  - [0, g1, 300]
  - {from: g1, to: 0, bandwidth: 13/3, latency: 1.5e-6}
cables:
  - [no, sw0, 25]
  - {from: sw1, to: no, bandwidth: "12.5"}
"""


def test_every_form_is_read_exactly():
    topology = Topology.loads(EVERY_FORM)
    assert topology.ranks == ("0", "g1", "no")
    assert [(s.name, s.multicast, s.reduces) for s in topology.switches] == [
        ("sw0", False, False),
        ("sw1", True, True),
        ("sw2", False, False),
    ]
    assert topology.hosts == {"box0": ("0", "g1")}
    assert {(link.source, link.target): link.bandwidth for link in topology.links} == {
        ("0", "g1"): Fraction(1623, 5),
        ("g1", "0"): Fraction(13, 3),
        ("no", "sw0"): 25,
        ("sw0", "no"): 25,
        ("no", "sw1"): Fraction(25, 2),
        ("sw1", "no"): Fraction(25, 2),
    }
    assert topology.links[1].latency == Fraction(3, 2_000_000)


def test_json_and_yaml_say_the_same():
    document = {"name": "x", "ranks": [0, "b"], "switches": [{"name": "s", "reduces": True}], "links": [[0, "b", 24.6]]}
    as_json, as_yaml = Topology.loads(json.dumps(document)), Topology.from_document(document)
    assert as_json == as_yaml
    assert as_json.capacities == {(0, 1): Fraction(123, 5)}
    assert as_json.switches[0].reduces


def test_flow_mappings_of_yaml_are_no_broken_json():
    assert Topology.loads("{ranks: [a, b], links: [[a, b, 1]]}").ranks == ("a", "b")


def test_one_rank_can_be_read_and_written():
    topology = Topology.loads("ranks: [a]")
    assert Topology.from_document(topology.to_document()) == topology


def test_the_finest_bandwidth_survives_writing():
    topology = Topology.loads("ranks: [a, b]\ncables: [[a, b, 1e-999]]")
    assert Topology.from_document(topology.to_document()) == topology


TWO = "ranks: [a, b]\n"
WRONG = {
    "": "a topology is a mapping",
    "[a, b]": "a topology is a mapping",
    "ranks: []": "no ranks",
    "ranks: a": "ranks is not a list",
    "ranks: [[a]]": "no name",
    "nodes: [a]": "unknown key 'nodes'",
    "ranks: [a, b": "is not YAML",
    '{"ranks": ["a", "b"': "line 1 is not JSON",
    '{"ranks": ["a"], "ranks": ["b"]}': "'ranks' stands twice",
    "ranks: [a]\nranks: [b]": "line 2 repeats the key 'ranks'",
    "ranks: [a]\n--- \nranks: [b]": "line 2 begins a second document",
    "ranks: &x [a]\nswitches: *x": "line 1 uses a YAML anchor",
    "ranks: [a]\nname: !!python/object/apply:os.system [echo]": "line 2 uses the YAML tag",
    "ranks: [a]\n? [b]\n: c": "line 2 has a key that is no plain text",
    "ranks: [a, a]": "a is used twice",
    "ranks: [a]\nname: \0": "not YAML",
    TWO + "links: [[a, b]]": "links, entry 1 is neither",
    TWO + "links: [[a, b, 1, 2]]": "links, entry 1 is neither",
    TWO + "links: [{from: a, to: b}]": "links, entry 1 is neither",
    TWO + "links: [{from: a, to: b, bandwidth: 1, speed: 2}]": "unknown key 'speed'",
    TWO + "links: [[a, a, 1]]": "a → a joins a node to itself",
    TWO + "links: [[a, c, 1]]": "a → c: 'c' is neither",
    TWO + "links: [[a, b, 0]]": "a → b: bandwidth 0",
    TWO + "links: [[a, b, -1]]": "a → b: bandwidth -1",
    TWO + "links: [[a, b, .nan]]": "a → b: bandwidth: '.nan' is not a number",
    TWO + "links: [[a, b, .inf]]": "a → b: bandwidth: '.inf' is not a number",
    TWO + "links: [[a, b, 1e10]]": "a → b: bandwidth 10000000000",
    TWO + "links: [[a, b, 1e999999999]]": "not a number",
    TWO + "links: [[a, b, 1/0]]": "not a number",
    TWO + "links: [[a, b, ١]]": "not a number",
    TWO + "links: [{from: a, to: b, bandwidth: 1, latency: -1}]": "a → b: latency -1",
    TWO + "switches: [{multicast: true}]": "a switch has no name",
    TWO + "switches: [{name: s, multicast: perhaps}]": "switch s: multicast is 'perhaps'",
    TWO + "hosts: [a]": "hosts is not a mapping",
    TWO + "hosts: {h: a}": "host h is not a list",
    TWO + 'hosts: {"\\e[31m": [a]}': "is no host name",
    TWO + 'name: "one\\ntwo"': "is no topology name",
    TWO + "name:": "is no topology name",
    TWO + "hosts: {h: [z]}": "host h holds 'z'",
    '{"ranks": ["a", "b"], "links": [["a", "b", NaN]]}': "'NaN' is not a number",
    '{"ranks": [true]}': "no name",
    '{"ranks": ' + "[" * 100_000: "nested too deep",
    "[" * 100_000: "line 1",
    "ranks: " + "[" * 20 + "]" * 20: "too deep",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_files_get_one_sentence(text):
    with pytest.raises(TopologyError) as caught:
        Topology.loads(text, "cluster.yaml")
    sentence = str(caught.value)
    assert sentence.startswith("cluster.yaml")
    assert WRONG[text] in sentence
    assert "\n" not in sentence
    assert len(sentence) < 400


def test_limits(tmp_path):
    with pytest.raises(TopologyError, match="larger than 1 MB"):
        Topology.loads(" " * 1_000_001)
    with pytest.raises(TopologyError, match="4097 nodes"):
        Topology.loads(f"ranks: {list(range(4097))}")
    assert len(Topology.loads(f"ranks: {list(range(4096))}").ranks) == 4096
    (tmp_path / "big.yaml").write_bytes(b"#" * 2_000_000)
    with pytest.raises(TopologyError, match=r"big.yaml is larger than 1 MB"):
        Topology.load(tmp_path / "big.yaml")


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for path, sentence in (
        (tmp_path, "cannot be read"),
        (tmp_path / "none", "cannot be read"),
        (tmp_path / "binary", "UTF-8"),
    ):
        with pytest.raises(TopologyError, match=sentence):
            Topology.load(path)


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "ranks", "links", "from", "switches", "hosts", "to"]), inner, max_size=4
        )
    ),
    max_leaves=15,
)


def refusal(read: Callable[[], Topology]) -> str:
    """The sentence of a refusal, or nothing where a topology comes out."""
    try:
        assert isinstance(read(), Topology)
    except TopologyError as error:
        return str(error)
    return ""


@given(plain)
def test_any_document_is_a_topology_or_a_sentence(document):
    sentence = refusal(lambda: Topology.from_document(document, "here"))
    assert not sentence or sentence.startswith("here: ")


@given(st.text(max_size=60))
def test_any_text_is_a_topology_or_a_sentence(text):
    assert "\n" not in refusal(lambda: Topology.loads(text))
