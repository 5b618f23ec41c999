"""A topology is checked when it is made and is the same however its links are listed."""

import pickle
from fractions import Fraction

import pytest
from hypothesis import given
from network_strategies import networks

from comm_plans import Topology
from comm_plans.errors import TopologyError
from comm_plans.topology import Link, Switch

PAIR = (Link("a", "b", Fraction(1)), Link("b", "a", Fraction(2)))


def test_parallel_links_add_up_and_keep_the_longer_latency():
    doubled = Link("a", "b", Fraction(3), Fraction(1, 1000))
    topology = Topology("t", ("a", "b"), (), (*PAIR, doubled, Link("a", "b", Fraction(1), Fraction(1, 10**6))))
    assert topology.capacities == {(0, 1): 5, (1, 0): 2}
    assert topology.links[0].latency == Fraction(1, 1000)


def test_order_of_links_does_not_matter():
    assert Topology("t", ("a", "b"), (), PAIR) == Topology("t", ("a", "b"), (), PAIR[::-1])


def test_nodes_are_ranks_then_switches():
    topology = Topology("t", ("b", "a"), (Switch("s"),), (Link("s", "b", Fraction(1)),))
    assert topology.nodes == ("b", "a", "s")
    assert [topology.index(name) for name in topology.nodes] == [0, 1, 2]
    with pytest.raises(TopologyError, match="no node 'x'"):
        topology.index("x")


def test_plain_numbers_become_exact():
    topology = Topology("t", ("a", "b"), (), (Link("a", "b", 25), Link("b", "a", 24.6)))  # type: ignore[arg-type]
    assert topology.capacities == {(0, 1): Fraction(25), (1, 0): Fraction(123, 5)}


@pytest.mark.parametrize(
    ("ranks", "switches", "links", "hosts", "sentence"),
    [
        ((), (), (), {}, "no ranks"),
        (("a", "a"), (), (), {}, "a is used twice"),
        (("a",), (Switch("a"),), (), {}, "a is used twice"),
        (("a", ""), (), (), {}, "'' is no node name"),
        (("a", "b\n"), (), (), {}, "no node name"),
        (tuple(map(str, range(4097))), (), (), {}, "4097 nodes"),
        (("a", "b"), (), (Link("a", "a", Fraction(1)),), {}, "a → a joins a node to itself"),
        (("a", "b"), (), (Link("a", "c", Fraction(1)),), {}, "a → c: 'c' is neither"),
        (("a", "b"), (), (Link("a", "b", Fraction(0)),), {}, "a → b: bandwidth 0"),
        (("a", "b"), (), (Link("a", "b", Fraction(-1)),), {}, "a → b: bandwidth -1"),
        (("a", "b"), (), (Link("a", "b", Fraction(10**9 + 1)),), {}, "a → b: bandwidth"),
        (("a", "b"), (), (Link("a", "b", float("nan")),), {}, "a → b: 'nan' is not a number"),
        (("a", "b"), (), (Link("a", "b", float("inf")),), {}, "a → b: 'inf' is not a number"),
        (("a", "b"), (), (Link("a", "b", Fraction(1), Fraction(-1)),), {}, "a → b: latency -1"),
        (("a", "b"), (), (), {"h": ("a", "x")}, "host h holds 'x'"),
        (("a", "b"), (), (), {"h": ("a",), "i": ("a",)}, "rank a is in host h and in host i"),
    ],
)
def test_nonsense_is_refused_by_name(ranks, switches, links, hosts, sentence):
    with pytest.raises(TopologyError, match=sentence):
        Topology("t", ranks, switches, links, hosts)


def test_a_link_may_be_as_fast_as_allowed():
    assert Topology("t", ("a", "b"), (), (Link("a", "b", Fraction(10**9)),)).capacities[0, 1] == 10**9


@given(networks())
def test_documents_round_trip(topology):
    assert Topology.from_document(topology.to_document()) == topology
    assert pickle.loads(pickle.dumps(topology)) == topology
    assert hash(pickle.loads(pickle.dumps(topology))) == hash(topology)


def test_files_round_trip(tmp_path):
    link = Link("a", "b", Fraction(13, 3), Fraction(1, 10**6))
    topology = Topology("t", ("a", "b"), (Switch("s", True, True),), (link,), {"h": ("a", "b")})
    topology.save(tmp_path / "t.json")
    assert Topology.load(tmp_path / "t.json") == topology
    assert [path.name for path in tmp_path.iterdir()] == ["t.json"]
