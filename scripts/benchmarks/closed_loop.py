"""Time to the validation loss of tuned plain DDP: one launch that decides everything, on networks that are the limit.

    sudo BENCH_CACHE=rows.jsonl .venv/bin/python scripts/bench.py closed-loop --json closed-loop.json

Needs root on Linux, for the network lab. Plain DDP over gloo trains at each of four cosine peaks; `orchestrate run
decide=all` gets its time, and that with each decision left out. Times are counted from the launch of the processes to
an evaluation. Then every task shipped on this machine, with and without decisions, and sweeps. A full run takes most of
an hour; with BENCH_CACHE a stopped one goes on. Quick: one small network, two peaks, one seed.
"""

from __future__ import annotations

import signal
import sys
from typing import Any

from benchmark_parts.closed_loop.schedule import FULL, QUICK, measured
from benchmark_parts.closed_loop.summary import summarise
from benchmark_parts.closed_loop.sweep_rows import sweep_rows, sweep_summary
from benchmark_parts.kept_rows import Row

from comm_plans.errors import PlansError


def run(quick: bool) -> tuple[list[Row], dict[str, Any]]:
    """A row an arm and seed, and the summary of them."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that the lab is taken down
    try:
        rows = measured(QUICK if quick else FULL)
    except PlansError as error:
        sys.exit(f"closed-loop: {error}")
    swept = sweep_rows(quick)
    columns = dict.fromkeys(key for row in (*rows, *swept) for key in row)
    return [columns | row for row in (*rows, *swept)], summarise(rows) | sweep_summary(swept)
