"""What every row of the benchmark has, so that one table shows them all; what does not apply is empty."""

from __future__ import annotations

import os
from typing import Any

Row = dict[str, Any]
COLUMNS = (
    "part", "text", "context", "method", "target", "steps", "read", "needed", "mass_mean", "mass_p5", "kl",
    "perplexity", "top1_agreement", "milliseconds", "tokens_per_second", "load", "note",
)  # fmt: skip


def row(**values: Any) -> Row:
    """A row with the machine's load. milliseconds, tokens_per_second: samples."""
    assert values.keys() <= set(COLUMNS)
    return {**dict.fromkeys(COLUMNS), "load": round(os.getloadavg()[0], 1), **values}
