"""The benchmark of overlap: what its summary says follows from its rows, and the numbers that were set out to reach."""

from __future__ import annotations

import pytest
from benchmark_parts.overlap.milp_rows import ALONE, EXACT, FIRST, WITHOUT_PAUSE, milp_rows
from benchmark_parts.overlap.rows import one_table, row
from benchmark_parts.overlap.simulator_rows import simulator_rows
from benchmark_parts.overlap.summary import loads, milp_summary, simulator_summary


def test_rows_of_all_kinds_make_one_table() -> None:
    table = one_table([row("a", "b", "c", seconds=[1.0]), row("d", "e", "f", fraction=0.5)])
    assert [list(each) for each in table] == [["kind", "case", "arm", "seconds", "fraction", "load"]] * 2
    assert (table[0]["fraction"], table[1]["seconds"]) == (None, None)


def test_loads_are_told_by_kind() -> None:
    rows = [row("a", "", "") | {"load": 2.0}, row("a", "", "") | {"load": 1.0}, row("b", "", "") | {"load": 0.5}]
    assert loads(rows) == {"a": [1.0, 2.0], "b": [0.5, 0.5]}


def test_gains_are_those_of_the_rows() -> None:
    milliseconds = {"first_tokens": 2.5, "longest_tail": 4.0, "as_given": 2.0, "soonest_needed": 5.0, EXACT: 2.0}
    rows = [
        row(kind, FIRST, arm, milliseconds=[value], gap=0.001, solve_seconds=2.0)
        for kind in (ALONE, WITHOUT_PAUSE)
        for arm, value in milliseconds.items()
    ]
    summary = milp_summary(rows)
    assert summary["milp_gain_over_list"] == pytest.approx(0.2)
    assert summary["milp_gain_over_critical_path"] == 0.5
    assert summary["milp_gain_over_best_rule"] == 0
    assert summary["milp_gain_without_pause"]["soonest_needed"] == pytest.approx(0.6)


@pytest.mark.slow
def test_the_simulator_and_the_exact_search_reach_what_was_set_out() -> None:
    found = milp_summary(milp_rows(quick=True)) | simulator_summary(simulator_rows(quick=True))
    assert found["milp_gain_over_list"] >= 0.05
    assert found["milp_gap"] <= 0.01
    assert found["simulator_serial_fraction"] == pytest.approx(0.613, abs=0.001)
    assert 0.63 <= found["simulator_overlap_fraction"] <= 0.75
    assert 0.3 <= found["simulator_memory_share"] <= 0.5
    assert 0.1 <= found["simulator_network_share"] <= 0.3
