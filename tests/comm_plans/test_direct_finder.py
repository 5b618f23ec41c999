"""The finder: published frontiers exactly, better ones by real costs, and every row confirmed by a verified plan."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from comm_plans.direct_connect.candidates import measured
from comm_plans.direct_connect.catalogue import DISTANCE_REGULAR, optimal_bases
from comm_plans.direct_connect.expression import build, parse
from comm_plans.direct_connect.fabric import wired
from comm_plans.direct_connect.finder import Finder
from comm_plans.direct_connect.found import Found
from comm_plans.direct_connect.frontier import Choice, by_formula, envelope
from comm_plans.direct_connect.seeds import read_seeds
from comm_plans.solve import solve

DATA = Path(__file__).parents[1] / "data"
FRONTIERS = json.loads((DATA / "topology_frontiers.json").read_text())
PUBLISHED = [key for key in FRONTIERS if key.startswith("paper")]
EXTENDED = [key for key in FRONTIERS if not key.startswith("paper")]
REAL, FORMULAS = Finder(), Finder(real=False)


def size_of(key: str) -> tuple[int, int]:
    nodes, degree = key.split(",")[1:]
    return int(nodes), int(degree)


def points(key: str) -> list[tuple[int, Fraction]]:
    """Steps and bandwidth times of the reference, at the cost that was measured where it was."""
    rows = FRONTIERS[key]
    return [(row.get("checked_TL", row["TL"]), Fraction(row.get("checked_TB", row["TB"]))) for row in rows]


@pytest.mark.parametrize("key", PUBLISHED)
def test_formulas_give_the_published_frontiers(key: str) -> None:
    found = FORMULAS.frontier(*size_of(key))
    assert [(each.steps, each.bandwidth_time) for each in found] == points(key)


def test_the_published_table_of_1024_nodes_of_degree_4() -> None:
    times = [Fraction(341, 256), Fraction(261, 256), Fraction(257, 256), Fraction(1), Fraction(1023, 1024)]
    found = FORMULAS.frontier(1024, 4)
    assert [(each.steps, each.bandwidth_time) for each in found] == list(zip([5, 6, 8, 11, 20], times, strict=True))


@pytest.mark.parametrize("key", EXTENDED)
def test_real_costs_are_nowhere_worse_than_the_reference(key: str) -> None:
    found = REAL.frontier(*size_of(key))
    for steps, time in points(key):
        assert any(each.beats(steps, time) for each in found), (steps, time)


def test_1024_nodes_of_degree_4_reach_the_least_bandwidth_time_in_6_steps() -> None:
    best = REAL.frontier(1024, 4)[-1]
    assert best.beats(6, Fraction(1023, 1024))
    assert measured(best.wiring).beats(6, Fraction(1023, 1024))


@pytest.mark.parametrize("nodes", [6, 12, 16, 27, 49, 64])
@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_every_row_is_confirmed_by_a_verified_plan(nodes: int, degree: int) -> None:
    for each in REAL.frontier(nodes, degree):
        topology = wired(str(each.wiring))
        assert (len(topology.ranks), build(each.wiring).degree) == (nodes, degree)
        assert solve(topology, "all_gather", method=each.method).algbw == degree / each.bandwidth_time


def test_costs_of_the_families_need_no_measuring() -> None:
    for nodes in (*range(2, 40), 64, 99, 200):
        for degree in range(1, 9):
            for base in optimal_bases(nodes, degree):
                assert measured(base.wiring).with_lines() == base


def test_distance_regular_graphs_are_optimal() -> None:
    assert all(measured(parse(word)).is_optimal for word in DISTANCE_REGULAR)


def test_listed_cayley_graphs_cost_what_is_listed() -> None:
    for (nodes, degree), front in read_seeds().items():
        for each in front if nodes <= 24 else list(front)[:1]:
            again = measured(each.wiring)
            assert (again.nodes, again.degree) == (nodes, degree)
            assert (again.with_lines() if nodes <= 24 else again).beats(each.steps, each.bandwidth_time)
            assert nodes > 24 or again.with_lines() == each


@pytest.mark.slow
def test_all_listed_cayley_graphs_cost_what_is_listed() -> None:
    for front in read_seeds().values():
        assert all(measured(each.wiring).with_lines() == each for each in front)


@pytest.mark.parametrize("key", ["8,2", "16,2", "20,2", "9,3", "16,3", "14,4", "28,4", "32,4"])
def test_listed_cayley_graphs_are_as_good_as_the_references(key: str) -> None:
    reference = json.loads((DATA / "topology_cayley.json").read_text())[key]
    nodes, degree = map(int, key.split(","))
    found = REAL.frontier(nodes, degree)
    assert any(each.beats(reference["bwopt"][0], Fraction(nodes - 1, nodes)) for each in found)
    assert any(each.beats(reference["lowlat"][0], Fraction(reference["lowlat"][1])) for each in found)


def test_a_frontier_has_no_row_that_another_one_beats() -> None:
    for nodes in range(2, 130, 7):
        found = REAL.frontier(nodes, 4) if nodes > 4 else REAL.frontier(nodes, 1)
        steps, times = [each.steps for each in found], [each.bandwidth_time for each in found]
        assert steps == sorted(set(steps))
        assert times == sorted(set(times), reverse=True)


def test_frontiers_are_kept_and_costs_never_believed(tmp_path: Path) -> None:
    first = Found(tmp_path).frontier(64, 4)
    kept = Found(tmp_path)
    kept.finder = None  # type: ignore[assignment] # nothing may be searched for
    assert kept.frontier(64, 4) == first
    (tmp_path / "64-4.json").write_text('{"version": 1, "wirings": [["U(64)", "breadth_first"]]}')
    assert Found(tmp_path).frontier(64, 4) == first
    (tmp_path / "64-4.json").write_text("{")
    assert Found(tmp_path).frontier(64, 4) == first


def test_each_size_has_its_best_wiring() -> None:
    choices = [by_formula(each) for each in FORMULAS.frontier(1024, 4)]
    alpha, bandwidth = 1e-5, 12.5e9
    sizes = [(2**power, choices) for power in range(4, 40)]
    best = envelope(choices, alpha, bandwidth)
    for size, among in sizes:
        fastest = min(among, key=lambda each: each.seconds(alpha, size, bandwidth))
        chosen: Choice = [choice for choice, start in best if start <= size][-1]
        assert chosen.seconds(alpha, size, bandwidth) == pytest.approx(fastest.seconds(alpha, size, bandwidth))
    microseconds = [1e6 * each.all_reduce_seconds(alpha, 2**20, bandwidth) for each in choices]
    assert [round(each) for each in microseconds] == [323, 291, 328, 388, 568]
