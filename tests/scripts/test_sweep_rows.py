"""The figures of sweeps, worked out from rows whose answers are known."""

import pytest
from benchmark_parts.closed_loop.sweep_rows import BARE, sweep_summary


def rows(sweep: str, own: float, overhead: float, trials: int = 10, slots: int = 2) -> list[dict[str, object]]:
    """Trials on `slots` cores, one after another on each, each with the same work and overhead."""
    told = []
    for number in range(trials):
        begin = (number // slots) * (own + overhead) + 0.1 * (number % slots)
        told.append({"sweep": sweep, "begin": begin, "end": begin + own + overhead, "own_seconds": own, "slots": slots})
    return told


def test_figures_of_sweeps() -> None:
    summary = sweep_summary([*rows("short", 2.0, 1.5), *rows("long", 40.0, 2.0), *rows(BARE, 0.0, 0.5)])
    assert summary["sweep_overhead_seconds"] == pytest.approx(1.5)
    assert summary["sweep_seconds_between_ends"] == pytest.approx((4 * 3.5 + 0.1) / 9)
    assert summary["bare_tune_seconds_between_ends"] == pytest.approx((4 * 0.5 + 0.1) / 9)
    assert summary["sweep_busy_share"] == pytest.approx(10 * 40 / (2 * (5 * 42 + 0.1 - 2.0)))
