"""The benchmark's summary, from its rows alone."""

from __future__ import annotations

from statistics import fmean, median
from typing import Any

from benchmark_parts.generation.accuracy import MIDDLE, TARGETS
from benchmark_parts.generation.kernels import DENSE
from benchmark_parts.generation.one_layer import SHARES, note_of
from benchmark_parts.generation.rows import Row

from trainers.generation.evaluation.side_by_side import ORACLE, TACTIC


def summarise(rows: list[Row]) -> dict[str, Any]:
    """Means over texts; of 5th percentiles the least over texts; speeds against the fastest dense way."""
    accuracy = [row for row in rows if row["part"] == "accuracy"]
    short, long = sorted({row["context"] for row in rows if row["part"] == "end to end"})
    return {
        "attained_mass_mean": {str(p): fmean(_values(accuracy, TACTIC, p, "mass_mean")) for p in TARGETS},
        "attained_mass_p5": {str(p): min(_values(accuracy, TACTIC, p, "mass_p5")) for p in TARGETS},
        "kept_over_oracle": _over(accuracy, "needed", TACTIC, ORACLE),
        "kl_over_quest": _over(accuracy, "kl", TACTIC, "Quest"),
        "kl_over_quest_with_ends": _over(accuracy, "kl", TACTIC, "Quest + sinks and recent"),
        "kl_over_snapkv": _over(accuracy, "kl", TACTIC, "SnapKV"),
        **{f"decode_speedup_32k_{share:.0%}".rstrip("%"): _one_layer(rows, share) for share in SHARES},
        "end_to_end_speedup_8k": _speedup([row for row in _part(rows, "end to end") if row["context"] == short]),
        "end_to_end_speedup_32k": _speedup([row for row in _part(rows, "end to end") if row["context"] == long]),
        "clustering_share_of_prefill": _clustering(rows, short),
        "engine_over_one_at_a_time": _engine(rows),
        "contexts": {"8k": short, "32k": long},
    }


def _part(rows: list[Row], part: str) -> list[Row]:
    return [row for row in rows if row["part"] == part]


def _values(rows: list[Row], method: str, target: float, column: str) -> list[float]:
    return [row[column] for row in rows if (row["method"], row["target"]) == (method, target)]


def _over(rows: list[Row], column: str, method: str, other: str) -> float:
    """Ratio of means over texts at the middle target."""
    return fmean(_values(rows, method, MIDDLE, column)) / fmean(_values(rows, other, MIDDLE, column))


def _speedup(rows: list[Row]) -> float:
    times = {row["method"]: median(row["milliseconds"]) for row in rows}
    return min(times[name] for name in DENSE) / times["Tactic"]


def _one_layer(rows: list[Row], share: float) -> float:
    of_layer = [row for row in _part(rows, "one layer") if row["note"] == note_of(share)]
    longest = max(row["context"] for row in of_layer)
    return _speedup([row for row in of_layer if row["context"] == longest])


def _clustering(rows: list[Row], context: int) -> float:
    times = {row["method"]: row["milliseconds"][0] for row in _part(rows, "prompt") if row["context"] == context}
    return times["clustering"] / times["storing"]


def _engine(rows: list[Row]) -> float:
    many, one = (row["tokens_per_second"] for row in _part(rows, "engine"))
    return median(a / b for a, b in zip(many, one, strict=True))
