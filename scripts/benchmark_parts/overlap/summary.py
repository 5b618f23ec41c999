"""The benchmark's summary, from its rows alone."""

from __future__ import annotations

from typing import Any

from benchmark_parts.overlap.milp_rows import ALONE, EXACT, FIRST, WITHOUT_PAUSE
from benchmark_parts.overlap.rows import Row
from benchmark_parts.overlap.simulator_rows import CHARGED_TO_COMPUTE, SHIPPED, TWO_SHARES

from trainers.overlap.ablation import Mode


def simulator_summary(rows: list[Row]) -> dict[str, Any]:
    """Fractions of the published optimum; shares of the shipped pipeline with one share a resource."""
    at = {(row["arm"], row["inflation"]): row for row in rows if row["kind"] in ("simulator", "ablation")}
    shares = at[TWO_SHARES, CHARGED_TO_COMPUTE]
    return {
        "simulator_serial_fraction": at[Mode.SERIAL, CHARGED_TO_COMPUTE]["fraction"],
        "simulator_nano_only_fraction": at[Mode.NANO_ONLY, CHARGED_TO_COMPUTE]["fraction"],
        "simulator_overlap_fraction": at[SHIPPED, CHARGED_TO_COMPUTE]["fraction"],
        "simulator_overlap_fractions": {
            f"{arm}, compute +{inflation:.0%}": row["fraction"]
            for (arm, inflation), row in at.items()
            if row["kind"] == "simulator"
        },
        "simulator_memory_share": shares["memory_share"],
        "simulator_network_share": shares["network_share"],
    }


def milp_summary(rows: list[Row]) -> dict[str, Any]:
    """How much shorter the exact schedule is than the list schedule that keeps one half of the batch ahead, and than
    the best of all rules, which knows each layer's best only afterwards."""
    alone, endless = (
        {row["arm"]: row for row in rows if (row["kind"], row["case"]) == (kind, FIRST)}
        for kind in (ALONE, WITHOUT_PAUSE)
    )
    return {
        "milp_gain_over_list": _gain(alone, "first_tokens"),
        "milp_gain_over_critical_path": _gain(alone, "longest_tail"),
        "milp_gain_over_best_rule": _gain(alone, _best_rule(alone)),
        "milp_gain_without_pause": {rule: _gain(endless, rule) for rule in endless if rule != EXACT},
        "milp_gap": alone[EXACT]["gap"],
        "milp_seconds": alone[EXACT]["solve_seconds"],
    }


def loads(rows: list[Row]) -> dict[str, list[float]]:
    """The least and the greatest load average while each kind of row was measured: below the cores it was idle."""
    found: dict[str, list[float]] = {}
    for row in rows:
        low, high = found.get(row["kind"], [row["load"]] * 2)
        found[row["kind"]] = [min(low, row["load"]), max(high, row["load"])]
    return found


def _gain(arms: dict[str, Row], rule: str) -> float:
    return 1 - arms[EXACT]["milliseconds"][0] / arms[rule]["milliseconds"][0]


def _best_rule(arms: dict[str, Row]) -> str:
    return min((rule for rule in arms if rule != EXACT), key=lambda rule: arms[rule]["milliseconds"][0])
