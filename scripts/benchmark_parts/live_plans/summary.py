"""The benchmark's summary: ratios of medians at the smallest size that was measured."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from benchmark_parts.live_plans.cases import CASES, COLLECTIVES, Row


def summarise(rows: Sequence[Row]) -> dict[str, Any]:
    """Parts of the exact bound that streams reach, and how many times faster they are than other ways."""
    summary: dict[str, Any] = {}
    for case in (case.name for case in CASES):
        for what in COLLECTIVES:
            summary[f"{case}_{what}_of_bound"] = _row(rows, case, what, "streams")["of_bound"]
            summary[f"{case}_{what}_of_bound_p2p"] = _row(rows, case, what, "p2p")["of_bound"]
        summary[f"{case}_all_reduce_over_gloo"] = _ratio(rows, case, "all_reduce", "gloo", "streams")
        summary[f"{case}_ddp_over_gloo"] = _ratio(rows, case, "ddp", "gloo", "streams")
    replanned = _row(rows, "torus_degraded", "all_reduce", "streams replanned")
    return summary | {
        "torus_all_reduce_over_ring": _ratio(rows, "torus", "all_reduce", "streams ring", "streams"),
        "torus_replanned_over_stale": _ratio(
            rows, "torus_degraded", "all_reduce", "streams stale", "streams replanned"
        ),
        "torus_replanned_of_bound": replanned["own_bound_seconds"] / median(replanned["seconds"]),
        "loopback_over_gloo": _ratio(rows, "loopback", "all_reduce", "gloo", "rule"),
        "load": max(row["load"] for row in rows),
    }


def _row(rows: Sequence[Row], case: str, what: str, way: str) -> Row:
    return next(row for row in rows if (row["case"], row["what"], row["way"]) == (case, what, way))


def _ratio(rows: Sequence[Row], case: str, what: str, slower: str, faster: str) -> float:
    return median(_row(rows, case, what, slower)["seconds"]) / median(_row(rows, case, what, faster)["seconds"])
