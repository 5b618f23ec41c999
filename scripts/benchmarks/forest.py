"""How long ForestColl takes on DGX A100 clusters: generic and with symmetry, verification included and also apart.

Compilation is excluded by solving the smallest cluster first. Short cases take turns and are repeated; from 64 boxes on
each runs once, in a process of its own, so that its peak memory is its own (in the quick form the largest case does).
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from statistics import median
from time import perf_counter
from typing import Any

from comm_plans.fabrics import dgx_a100
from comm_plans.solve import solve
from comm_plans.verifier import verify

Row = dict[str, Any]
BOXES = (2, 4, 8, 16, 32, 64, 128)
QUICK_BOXES = {False: (2, 4, 8, 16), True: (2, 4, 8, 16, 32)}  # by symmetric
ALONE = 64  # boxes from which a case has its own process
REPEATS = 5
ENOUGH = 20.0  # seconds spent on a case after which it is not repeated


def run(quick: bool) -> tuple[list[Row], dict[str, Any]]:
    """Measure all-gather; returns a row for each cluster and form, and medians by number of boxes."""
    chosen = QUICK_BOXES if quick else {False: BOXES, True: BOXES}
    cases = [(boxes, symmetric) for symmetric in (False, True) for boxes in chosen[symmetric]]
    rows = {case: _row(*case) for case in cases}
    _compile()
    for _ in range(REPEATS):
        for case in cases:
            if case[0] < ALONE and sum(rows[case]["seconds"]) < ENOUGH:
                _add(rows[case], measure(*case))
    for case in [case for case in cases if case[0] >= ALONE] or cases[-1:]:
        _add(rows[case], _measured_alone(*case))
    done = list(rows.values())
    return done, _summary(done)


def measure(boxes: int, symmetric: bool) -> Row:
    """One solve of an all-gather on `boxes` boxes; seconds include the verification that `solve` does."""
    topology = dgx_a100(boxes)
    started = perf_counter()
    plan = solve(topology, "all_gather", symmetric=symmetric)
    seconds = perf_counter() - started
    document = plan.to_document()
    started = perf_counter()
    verify(document)
    sample = {"seconds": seconds, "verify_seconds": perf_counter() - started}
    return sample | {"depth": plan.depth, "algbw": str(plan.algbw), "optimal": plan.optimal, "trees": len(plan.trees)}


def _row(boxes: int, symmetric: bool) -> Row:
    return {"boxes": boxes, "ranks": 8 * boxes, "symmetric": symmetric, "seconds": [], "verify_seconds": []}


def _add(row: Row, sample: Row) -> None:
    for key in ("seconds", "verify_seconds"):
        row[key].append(sample.pop(key))
    row.update({"peak_memory_gb": None} | sample)


def _compile() -> None:
    for symmetric in (False, True):
        measure(2, symmetric)


def _measured_alone(boxes: int, symmetric: bool) -> Row:
    command = [sys.executable, __file__, str(boxes), str(int(symmetric))]
    sample: Row = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return sample


def _summary(rows: list[Row]) -> dict[str, Any]:
    def by_boxes(key: str, symmetric: bool) -> dict[str, float]:
        chosen = [row for row in rows if row["symmetric"] == symmetric]
        return {str(row["boxes"]): median(row[key]) if isinstance(row[key], list) else row[key] for row in chosen}

    return {
        "seconds_by_boxes": by_boxes("seconds", False),
        "symmetric_seconds_by_boxes": by_boxes("seconds", True),
        "depth_by_boxes": by_boxes("depth", True),
        "generic_depth_by_boxes": by_boxes("depth", False),
        "verify_seconds_by_boxes": by_boxes("verify_seconds", True),
        "peak_memory_gb": max(row["peak_memory_gb"] or 0.0 for row in rows),
    }


if __name__ == "__main__":
    _compile()
    measured = measure(int(sys.argv[1]), bool(int(sys.argv[2])))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    print(json.dumps(measured | {"peak_memory_gb": peak}))
