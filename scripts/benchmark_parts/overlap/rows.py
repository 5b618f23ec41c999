"""What rows of the simulator and of the exact search have in common."""

from __future__ import annotations

import os
from typing import Any

Row = dict[str, Any]


def row(kind: str, case: str, arm: str, **measured: Any) -> Row:
    """A row with the machine's load."""
    return {"kind": kind, "case": case, "arm": arm, **measured, "load": round(os.getloadavg()[0], 1)}


def one_table(rows: list[Row]) -> list[Row]:
    """The same columns in every row; what does not apply is empty."""
    columns = dict.fromkeys(column for each in rows for column in each if column != "load")
    return [{**columns, **each, "load": each.get("load")} for each in rows]
