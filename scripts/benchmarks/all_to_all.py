"""All-to-all: schedules for clusters of servers beside their bounds and other ways, flows on direct networks.

Compilation is left out by first runs. Quick: no cluster of 320 servers, small cases, no network of 256 nodes.
"""

from __future__ import annotations

from typing import Any

from benchmark_parts import flow_rows
from benchmark_parts.all_to_all import flash_rows

Row = dict[str, Any]


def run(quick: bool) -> tuple[list[Row], dict[str, Any]]:
    """A row a measurement with all its samples in seconds, and the summary of both halves."""
    rows: list[Row] = []
    summary: dict[str, Any] = {}
    for part in (flash_rows, flow_rows):
        more, figures = part.rows(quick)
        rows += more
        summary |= figures
    columns = list(dict.fromkeys(key for row in rows for key in row))
    return [{column: row.get(column) for column in columns} for row in rows], summary
