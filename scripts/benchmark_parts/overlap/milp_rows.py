"""The exact search beside list schedules, without interference: how long, how good, and how surely.

The pipelines are those of three models, the times those of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

from benchmark_parts.overlap.published import LAYER_SECONDS, PIPELINES
from benchmark_parts.overlap.rows import Row, row

from trainers.overlap.cyclic import shortest_period
from trainers.overlap.list_schedule import RULES, list_schedule
from trainers.overlap.search import lower_bound
from trainers.overlap.serving import layer
from trainers.overlap.times import nano_times

EXACT = "exact"
ALONE, WITHOUT_PAUSE = "one layer by itself", "layers without a pause"
FIRST = "70B, 2048 tokens"
INFLATION = 0.1


def milp_rows(quick: bool) -> list[Row]:
    """A row a way, for the shipped pipelines; a layer by itself, and layers that follow without a pause."""
    cases = [FIRST] if quick else ["70B, 2048 tokens", "70B, 1024 tokens", "Mixtral, 4096 tokens"]
    return [each for case in cases for periodic in (False, True) for each in _rows(case, periodic)]


def _rows(case: str, periodic: bool) -> Iterator[Row]:
    pipeline = PIPELINES[case]
    whole = layer(pipeline.batch, pipeline.batch * 11 // 16)
    graph = pipeline.graph(whole)
    times = nano_times(graph, whole, LAYER_SECONDS, INFLATION)
    kind = WITHOUT_PAUSE if periodic else ALONE
    for rule in RULES:
        yield row(kind, case, rule.__name__, milliseconds=[list_schedule(graph, times, rule, periodic).period * 1e3])
    begun = perf_counter()
    found = shortest_period(graph, times, periodic=periodic, seconds=30)
    assert found.schedule
    yield row(
        kind,
        case,
        EXACT,
        milliseconds=[found.schedule.period * 1e3],
        gap=found.schedule.period / found.bound - 1,
        solve_seconds=perf_counter() - begun,
        note=f"{len(graph)} operations, {found.binaries} orders; busiest stream {lower_bound(graph, times) * 1e3:.3f}",
    )
