"""Collectives and training steps by plan on real TCP over shaped networks, beside gloo, a ring and the exact bound.

    sudo .venv/bin/python scripts/bench.py live-plans --json live-plans.json

Needs root on Linux, for the network lab. Ways take turns; a sample is the slowest rank's time. Quick: 8 MiB only and
one sample of each.
"""

from __future__ import annotations

import sys
from typing import Any

from benchmark_parts.live_plans import lab_rows, loopback
from benchmark_parts.live_plans.cases import MIB, Row
from benchmark_parts.live_plans.summary import summarise

from comm_plans.errors import PlansError

SIZES = (8 * MIB, 32 * MIB)
REPEATS = 3
LOOPBACK_REPEATS = 15


def run(quick: bool) -> tuple[list[Row], dict[str, Any]]:
    """A row a way, size and case, and the summary of them."""
    try:
        rows = loopback.rows(LOOPBACK_REPEATS) + lab_rows.rows(SIZES[:1] if quick else SIZES, 1 if quick else REPEATS)
    except PlansError as error:
        sys.exit(f"live-plans: {error}")
    return rows, summarise(rows)
