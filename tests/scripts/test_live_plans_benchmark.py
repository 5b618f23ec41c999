"""The live-plans benchmark's parts: its ring and bounds worked out by hand, a summary of rows, a figure of them."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
from benchmark_parts.live_plans.cases import CASES, COLLECTIVES, bound_seconds, degraded, ring_plan
from benchmark_parts.live_plans.loopback import rows as loopback_rows
from benchmark_parts.live_plans.summary import summarise
from live_plans_figure import main as draw

from comm_plans import solve
from comm_plans.runtime.lowering import lower
from comm_plans.runtime.replay import replay

STAR, _, TORUS = CASES


def test_the_ring_is_a_right_plan_that_shares_no_link() -> None:
    plan = ring_plan(TORUS.topology, TORUS.ring).plans[0]
    assert plan.algbw == Fraction("0.00625") * Fraction(9, 16)
    replay(lower(plan), 90, chunk=4)


def test_the_bound_is_that_of_the_payload() -> None:
    plan = solve(STAR.topology, "all_reduce")
    assert bound_seconds(plan, 10**6) == pytest.approx(160e-3 * 9014 / 8948)


def test_two_cables_of_the_torus_become_slow_both_ways() -> None:
    before, after = TORUS.topology.capacities, degraded(TORUS.topology).capacities
    assert {link: rate for link, rate in after.items() if rate != before[link]} == dict.fromkeys(
        [(0, 1), (1, 0), (0, 3), (3, 0)], Fraction("0.00125")
    )


def row(case: str, what: str, way: str, seconds: float) -> dict:
    bound = {"bound_seconds": 0.5, "own_bound_seconds": 0.6, "of_bound": 0.5 / seconds}
    return {"case": case, "what": what, "way": way, "mib": 8, "seconds": [seconds] * 3, "load": 1.0} | bound


@pytest.fixture
def rows() -> list[dict]:
    """Streams take one second, P2P two, everything else four."""
    ways = {"streams": 1.0, "p2p": 2.0, "gloo": 4.0, "streams ring": 4.0}
    names = [case.name for case in CASES]
    found = [row(case, what, way, ways[way]) for case, what, way in product(names, (*COLLECTIVES, "ddp"), ways)]
    found += [
        row("torus_degraded", "all_reduce", f"streams {way}", 1.0 if way == "replanned" else 4.0)
        for way in ("replanned", "stale")
    ]
    return [*found, row("loopback", "all_reduce", "rule", 2.0), row("loopback", "all_reduce", "gloo", 2.0)]


def test_the_summary_has_ratios_of_medians(rows: list[dict]) -> None:
    summary = summarise(rows)
    for case, what in product(("star", "two_boxes", "torus"), COLLECTIVES):
        assert summary[f"{case}_{what}_of_bound"] == 0.5
        assert summary[f"{case}_{what}_of_bound_p2p"] == 0.25
        assert summary[f"{case}_all_reduce_over_gloo"] == summary[f"{case}_ddp_over_gloo"] == 4
    assert summary["torus_replanned_over_stale"] == 4
    assert summary["torus_replanned_of_bound"] == 0.6
    assert summary["loopback_over_gloo"] == 1


def test_the_figure_is_drawn(rows: list[dict], tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text(json.dumps({"rows": rows}))
    draw(tmp_path / "rows.json", tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")


def test_where_the_processor_is_the_limit_the_rule_leaves_the_work_to_gloo() -> None:
    ways = {row["way"]: row["seconds"] for row in loopback_rows(repeats=3)}
    assert min(ways["rule"]) < 5 * min(ways["gloo"])
