"""A layer of LLaMA-2-70B on eight A100 in the simulator, from published times and the published table alone.

How much longer compute takes when it is cut is not known: the published loss of cutting, all charged to compute, is a
quarter of it; the other rows show how much hangs on that.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from time import monotonic

from benchmark_parts.overlap.published import (
    LAYER_SECONDS,
    LAYERS,
    PIPELINES,
    PROMPTS_FROM,
    TOKENS,
    fraction,
    offload_seconds,
)
from benchmark_parts.overlap.rows import Row, row

from trainers.overlap.ablation import Mode, Offload, ablation
from trainers.overlap.improvement import Improvement
from trainers.overlap.interference import PUBLISHED
from trainers.overlap.layer_search import LayerPlan, LayerSearch
from trainers.overlap.operations import Resource
from trainers.overlap.search import structures
from trainers.overlap.serving import layer
from trainers.overlap.simulator import Device

CHARGED_TO_COMPUTE = 0.25
INFLATIONS = (CHARGED_TO_COMPUTE, 0.1, 0.0)
TWO_SHARES, SHIPPED, SEARCHED = "shipped, a share a resource", "shipped, searched", "searched"


def simulator_rows(quick: bool) -> list[Row]:
    """A row a mode at the published loss; a row a pipeline and assumed loss."""
    rows = list(_ablation())
    for inflation in INFLATIONS[: 1 if quick else None]:
        rows += _pipelines(inflation, quick)
    return rows


def _layer(inflation: float) -> LayerSearch:
    return LayerSearch(layer(TOKENS, PROMPTS_FROM), LAYER_SECONDS, PUBLISHED, inflation)


def _ablation() -> Iterator[Row]:
    offload = Offload(offload_seconds(), PUBLISHED.curves[Resource.NETWORK])  # the curve of copies is our assumption
    periods = ablation(_layer(CHARGED_TO_COMPUTE), PIPELINES["70B, 2048 tokens"], offload)
    for mode in Mode:
        yield _row("ablation", mode, CHARGED_TO_COMPUTE, periods[mode])


def _pipelines(inflation: float, quick: bool) -> Iterator[Row]:
    search, shipped = _layer(inflation), PIPELINES["70B, 2048 tokens"]
    yield _two_shares(search, inflation)
    yield _planned(SHIPPED, search.planned(shipped), inflation)
    if not quick:
        yield _planned(SEARCHED, search.run(), inflation)


def _two_shares(search: LayerSearch, inflation: float) -> Row:
    """Stage I, then the best share for all of memory and for all of the network, by a grid."""
    graph = PIPELINES["70B, 2048 tokens"].graph(search.whole)
    times = search.times_of(graph)
    schedules = structures(graph, times, periodic=True, deadline=monotonic() + 30).schedules
    drafts = Improvement(Device(graph, times, PUBLISHED), periodic=True, deadline=0)
    best = min((draft for each in schedules if (draft := drafts.first(each))), key=lambda draft: draft.period)
    memory, network = (best.shares[graph.on(each)[0]] for each in (Resource.MEMORY, Resource.NETWORK))
    return _row("simulator", TWO_SHARES, inflation, best.period, memory_share=memory, network_share=network)


def _planned(arm: str, found: LayerPlan, inflation: float) -> Row:
    """Shares as means over time."""
    plan = found.plan
    memory, network = (
        fmean(plan.shares[name] for name in plan.streams[each]) for each in (Resource.MEMORY, Resource.NETWORK)
    )
    note = str(found.pipeline) if arm == SEARCHED else None
    return _row("simulator", arm, inflation, plan.period_seconds, memory_share=memory, network_share=network, note=note)


def _row(
    kind: str,
    arm: str,
    inflation: float,
    period: float,
    memory_share: float | None = None,
    network_share: float | None = None,
    note: str | None = None,
) -> Row:
    """milliseconds: of an iteration of 80 layers; fraction: of the published optimum."""
    return row(
        kind,
        f"compute +{inflation:.0%} when cut",
        arm,
        inflation=inflation,
        milliseconds=[period * LAYERS * 1e3],
        fraction=fraction(period),
        memory_share=memory_share,
        network_share=network_share,
        note=note,
    )
