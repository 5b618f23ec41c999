"""Overlap within one device: NanoFlow's pipeline in a simulator and searched exactly; training and generation measured.

    python scripts/bench.py overlap --json FILE

Training runs two ranks over links that the network lab shapes (root); generation runs SmolLM2. Simulated rows follow
from published inputs and are the same everywhere. Quick: fewer pipelines, rounds and tokens.
"""

from __future__ import annotations

from typing import Any

from benchmark_parts.overlap.milp_rows import milp_rows
from benchmark_parts.overlap.rows import Row, one_table
from benchmark_parts.overlap.simulator_rows import simulator_rows
from benchmark_parts.overlap.summary import loads, milp_summary, simulator_summary


def run(quick: bool) -> tuple[list[Row], dict[str, Any]]:
    """A row an arm, and the summary."""
    from benchmark_parts.overlap.generation_rows import generation_rows, generation_summary, kv_rows
    from benchmark_parts.overlap.training_rows import training_rows, training_summary

    trained = training_rows(quick)  # before there are threads: its ranks are forked
    generated = [*generation_rows(quick), *kv_rows(quick)]
    simulated, structures = simulator_rows(quick), milp_rows(quick)
    rows = [*simulated, *structures, *trained, *generated]
    return one_table(rows), {
        **simulator_summary(simulated),
        **milp_summary(structures),
        **training_summary(trained),
        **generation_summary(generated),
        "load": loads(rows),
    }
