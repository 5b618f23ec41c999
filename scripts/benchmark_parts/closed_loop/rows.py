"""One row an arm: when its losses were seen, how long it took, on how busy a machine."""

from __future__ import annotations

import os
from typing import Any

from benchmark_parts.closed_loop.curves import Curve
from benchmark_parts.kept_rows import Row


def row(part: str, case: str, arm: str, seed: int, curve: Curve, load: float, **others: Any) -> Row:
    """A row with every column; what was not measured is None.

    seconds: from the launch to its end. failed: what a run that did not finish said last. cluster_seconds: that the
    cluster took to start before the launch. rate: the highest. decided: each decision's gain and cost.
    """
    empty = dict.fromkeys(("seconds", "cluster_seconds", "rate", "decided", "failed"))
    return {
        "part": part,
        "case": case,
        "arm": arm,
        "seed": seed,
        "loss": curve.losses[-1] if curve.losses else None,
        **empty,
        "load": load,
        "curve_seconds": list(curve.seconds),
        "curve_losses": list(curve.losses),
        **others,
    }


def load() -> float:
    """Processes that run or wait for a processor, over the last minute."""
    return round(os.getloadavg()[0], 1)


def curve_of(row: Row) -> Curve:
    """What `row` keeps of a curve."""
    return Curve(row["curve_seconds"], row["curve_losses"])
