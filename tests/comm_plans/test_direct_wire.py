"""`comm-plan wire`, wirings as words, and the list to patch by."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from comm_plans.cli import main
from comm_plans.direct_connect.cables import wiring_list
from comm_plans.direct_connect.expression import build, parse
from comm_plans.errors import TopologyError
from comm_plans.sources import topology_from

WORDS = (
    "L^2(L^2(DiC(8,1,3))*2)",
    "(U(4)xU(8))^2",
    "Cay(Z16:Z2:7,0.1,1.0,2.0,13.1)",
    "Cay(Z2xZ4,0.1,1.0)",
    "Edges(Kneser(5,2))xK(3)",
    "(K(3)*2)^2",
    "Torus(2,3,4)",
    "AG4()",
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize("word", WORDS)
def test_words_are_read_as_they_are_written(word: str) -> None:
    assert str(parse(word)) == word
    graph = build(parse(word))
    for ends in (graph.arcs[:, 0], graph.arcs[:, 1]):
        assert set(Counter(ends.tolist()).values()) == {graph.degree}


def test_the_same_network_by_other_words() -> None:
    assert topology_from("K(4)").capacities == topology_from("full_mesh:ranks=4").capacities
    assert topology_from("Q(3):bandwidth=5/2").links[0].bandwidth == Fraction(5, 2)
    assert len(topology_from("L(K(4,4))").ranks) == 32


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("Foo(3)", "no base graph 'Foo'"),
        ("K(3", "makes no sense"),
        ("K(3))", "makes no sense at '\\)'"),
        ("K(x)", "not of the form K"),
        ("K(3,4)", "not regular"),
        ("C(6,0)", "distinct jumps"),
        ("C(6,3)", "distinct jumps"),
        ("U(1)", "too little"),
        ("K(9999)", "too many"),
        ("Pi(4,5000)", "too many"),
        ("L^9(K(5))", "too many"),
        ("Cay(Z7:Z3:3,0.1)", "is no group"),
        ("Cay(Z4,1,1)", "distinct"),
        ("Cay(Z4,1.1)", "no element"),
        ("GQ(4)", "is not built"),
        ("K(3):bandwidth=0", "not above zero"),
        ("K(3):bandwidth=x", "not a number"),
    ],
)
def test_wrong_words_are_explained(word: str, sentence: str) -> None:
    with pytest.raises(TopologyError, match=sentence):
        topology_from(word)


def test_json_is_one_list_whose_rows_solve_confirms(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wire", "--nodes", "16", "--degree", "2", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows
    for row in rows:
        assert {"topology", "method", "nodes", "degree", "steps", "bandwidth_time"} <= set(row)
        main(["solve", row["topology"], "--collective", "all_gather", "--method", row["method"], "--json"])
        answer = json.loads(capsys.readouterr().out)
        assert Fraction(answer["algbw"]) == row["degree"] / Fraction(row["bandwidth_time"])
        assert (answer["ranks"], answer["depth"]) == (row["nodes"], row["steps"])


def test_a_person_sees_a_table_advice_and_a_picture(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wire", "--nodes", "8", "--degree", "2", "--show", "--bytes", "1GiB", "--alpha", "2e-6"]) == 0
    shown = capsys.readouterr()
    assert "7/8 = 0.8750" in shown.out
    assert "all_gather of 1 GiB" in shown.out
    assert shown.out.count("●") == 16
    assert "assuming" in shown.err
    assert main(["wire", "--nodes", "2..4", "--degree", "1", "--formulas", "--bandwidth", "25", "--alpha", "1e-6"]) == 0
    assert capsys.readouterr().out.count("nodes of degree 1") == 3


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--nodes 1 --degree 1", "a network has 2 nodes or more"),
        ("--nodes -3 --degree 1", "a network has 2 nodes or more"),
        ("--nodes 5 --degree 0", "cannot be wired"),
        ("--nodes 4 --degree 4", "no simple graph of 4 nodes has degree 4"),
        ("--nodes 5000 --degree 4", "too many"),
        ("--nodes 4000 --degree 100", "too large"),
        ("--nodes many --degree 4", "is no number of nodes"),
        ("--nodes 9..8 --degree 4", "no range"),
        ("--nodes 8 --degree 2 --bytes 1x", "is no size"),
        ("--nodes 8 --degree 2 --alpha -1", "makes no sense"),
        ("--nodes 8 --degree 2 --wiring /no/such/folder/x.csv", "does not exist"),
        ("--nodes 100 --degree 2 --show", "too many to draw"),
    ],
)
def test_wrong_input_is_one_sentence(arguments: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wire", *arguments.split()]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert sentence in shown.err
    assert shown.err.count("\n") == 1


def test_the_list_to_patch_by_is_the_wiring(tmp_path: Path) -> None:
    file = tmp_path / "patch.csv"
    assert main(["wire", "--nodes", "8", "--degree", "2", "--wiring", str(file)]) == 0
    assert file.read_text() == wiring_list(build(parse("DiC(8,1,3)")))


@pytest.mark.parametrize("word", ["DiC(8,1,3)", "B(5)", "Pi(4,11)", "Kneser(5,2)", "L(K(3))"])
def test_each_port_is_used_once_and_each_arc_is_a_cable(word: str) -> None:
    graph = build(parse(word))
    rows = list(csv.DictReader(io.StringIO(wiring_list(graph))))
    there = [(row["from_host"], row["to_host"]) for row in rows]
    back = [(row["to_host"], row["from_host"]) for row in rows if row["direction"] == "both"]
    arcs = [(f"g{source}", f"g{target}") for source, target in graph.arcs.tolist() if source != target]
    assert Counter(there + back) == Counter(arcs)
    sending = [(row["from_host"], row["from_port"]) for row in rows]
    receiving = [(row["to_host"], row["to_port"]) for row in rows]
    ends = [sending + receiving] if back else [sending, receiving]
    assert all(max(Counter(each).values()) == 1 for each in ends)
    assert all(int(port) < graph.degree for _, port in sending + receiving)
