"""The figures of the benchmark, worked out from its rows: how much sooner a launch that decides reaches a tuned loss.

The target of a case and seed is the loss that plain DDP ends with at its best peak: the one whose losses are lowest in
the mean over seeds. Ratios are medians over seeds; where a seed does not reach its target there is none, but a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import Any

from benchmark_parts.closed_loop.cases import ALL, NONE, WITHOUT
from benchmark_parts.closed_loop.curves import Curve
from benchmark_parts.closed_loop.rows import curve_of
from benchmark_parts.kept_rows import Row

AS_GOOD = 1.01  # times the default's last loss, in the mean over seeds; single seeds of one arm differ by more
PLAIN = "plain "


class MissedError(Exception):
    """A run that failed, or did not reach its target; the text says which and how."""


def summarise(rows: Sequence[Row]) -> dict[str, Any]:
    """The figures by case; `missed` says why there is none where there is none."""
    cases, tasks = _grouped(rows, "lab"), _grouped(rows, "local")
    missed: dict[str, str] = {}
    slowdowns = {task: _tried(missed, task, slowdown, own) for task, own in tasks.items()}
    return {
        "time_to_target_speedup_by_case": {
            case: _tried(missed, f"{case}: speedup", speedup, own) for case, own in cases.items()
        },
        "speedup_over_grid_by_case": {
            case: _tried(missed, f"{case}: grid", speedup_over_grid, own) for case, own in cases.items()
        },
        "time_to_target_speedup_with_cluster_start_by_case": {
            case: _tried(missed, f"{case}: with cluster", speedup_with_cluster, own) for case, own in cases.items()
        },
        "gain_by_decision": {case: _gains(missed, case, own) for case, own in cases.items()},
        "decide_all_slowdown_by_task": slowdowns,
        "decide_all_worst_slowdown": None if None in slowdowns.values() else max(slowdowns.values(), default=None),
        "best_peak_by_case": {case: _tried(missed, f"{case}: peak", best_peak, own) for case, own in cases.items()},
        "missed": missed,
    }


def best_peak(rows: Sequence[Row]) -> str:
    """The tuned arm of one case that ends lowest. Raises MissedError where none came to its end."""
    tuned = {row["arm"] for row in rows if row["arm"].startswith(PLAIN)}
    ends = {arm: [row["loss"] for row in rows if row["arm"] == arm and not row["failed"]] for arm in sorted(tuned)}
    seeds = len({row["seed"] for row in rows})
    means = {arm: fmean(losses) for arm, losses in ends.items() if len(losses) == seeds}
    if not means:
        raise MissedError("no peak came to its end with every seed")
    return min(means, key=means.__getitem__)


def speedup(rows: Sequence[Row]) -> float:
    """How much sooner a launch that decides is at the target than plain DDP at its best peak, in one case."""
    best = best_peak(rows)
    return _over_seeds(rows, lambda seed: _until(rows, best, seed) / _until(rows, ALL.name, seed))


def speedup_with_cluster(rows: Sequence[Row]) -> float:
    """The same where Ray has to be started on the nodes first."""
    best = best_peak(rows)

    def ours(seed: int) -> float:
        return float(_row(rows, ALL.name, seed)["cluster_seconds"]) + _until(rows, ALL.name, seed)

    return _over_seeds(rows, lambda seed: _until(rows, best, seed) / ours(seed))


def speedup_over_grid(rows: Sequence[Row]) -> float:
    """How much sooner it is there than all peaks together are at their ends, one after another."""

    def grid(seed: int) -> float:
        return sum(row["seconds"] for row in rows if row["seed"] == seed and row["arm"].startswith(PLAIN))

    return _over_seeds(rows, lambda seed: grid(seed) / _until(rows, ALL.name, seed))


def gain(rows: Sequence[Row], without: str) -> float:
    """How much longer it takes with one decision left out."""
    return _over_seeds(rows, lambda seed: _until(rows, without, seed) / _until(rows, ALL.name, seed))


def slowdown(rows: Sequence[Row]) -> float:
    """Of one task: when a launch that decides first is where the default ends, by when the default first is there.

    In a seed in which it ends above and never is there, the whole runs are compared; in the mean it must be as good.
    """
    seeds = sorted({row["seed"] for row in rows})
    pairs = [tuple(curve_of(_row(rows, arm, seed)) for arm in (NONE.name, ALL.name)) for seed in seeds]
    end, our_end = (fmean(curve.losses[-1] for curve in curves) for curves in zip(*pairs, strict=True))
    if our_end > AS_GOOD * end:
        raise MissedError(f"{ALL.name} ended at {our_end:.4g} in the mean, the default at {end:.4g}")
    return median(_slowdown(*pair) for pair in pairs)


def _slowdown(default: Curve, ours: Curve) -> float:
    """That of one seed."""
    end = default.losses[-1]
    here, there = default.reached(end), ours.reached(end)
    if here is None or there is None:
        return ours.seconds[-1] / default.seconds[-1]
    return there / here


def _gains(missed: dict[str, str], case: str, rows: Sequence[Row]) -> dict[str, float | None]:
    there = {row["arm"] for row in rows}
    arms = {name: arm.name for name, arm in WITHOUT.items() if arm.name in there}
    return {name: _tried(missed, f"{case}: {name}", gain, rows, arm) for name, arm in arms.items()}


def _until(rows: Sequence[Row], arm: str, seed: int) -> float:
    """Seconds from the launch to the target. Raises MissedError where it is not reached."""
    target = _row(rows, best_peak(rows), seed)["loss"]
    row = _row(rows, arm, seed)
    reached = curve_of(row).reached(target)
    if reached is None:
        best = min(row["curve_losses"])
        raise MissedError(f"{arm}, seed {seed}, was at {best:.4g} at best, the target is {target:.4g}")
    return reached


def _row(rows: Sequence[Row], arm: str, seed: int) -> Row:
    """The row of an arm. Raises MissedError where it has no losses."""
    row = next(row for row in rows if (row["arm"], row["seed"]) == (arm, seed))
    if not row["curve_losses"]:
        raise MissedError(f"{arm}, seed {seed}, failed: {row['failed']}")
    return row


def _over_seeds(rows: Sequence[Row], ratio: Callable[[int], float]) -> float:
    return median(ratio(seed) for seed in sorted({row["seed"] for row in rows}))


def _grouped(rows: Sequence[Row], part: str) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row["part"] == part:
            groups.setdefault(row["case"], []).append(row)
    return groups


def _tried(missed: dict[str, str], name: str, figure: Callable[..., Any], *arguments: Any) -> Any:
    """The figure; None where there is none, and why under its name."""
    try:
        return figure(*arguments)
    except MissedError as error:
        missed[name] = str(error)
        return None
