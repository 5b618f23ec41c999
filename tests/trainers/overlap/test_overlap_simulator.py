"""The event simulator: by hand, as the published inputs demand, and sensible when its table changes."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from benchmark_parts.overlap.published import LAYER_SECONDS, LAYERS, NANO_ONLY_LOSS, PIPELINES, PROMPTS_FROM, fraction
from hypothesis import given, settings
from hypothesis import strategies as st
from overlap_graphs import random_graph

from trainers.errors import OverlapError
from trainers.overlap.interference import PUBLISHED, InterferenceTable
from trainers.overlap.list_schedule import as_given, list_schedule
from trainers.overlap.operations import Operation, OperationGraph, Resource
from trainers.overlap.schedule import Schedule
from trainers.overlap.search import search
from trainers.overlap.serving import layer
from trainers.overlap.shares import uniform
from trainers.overlap.simulator import Device, steady
from trainers.overlap.times import nano_times

KNOWN: dict[str, Any] = json.loads((Path(__file__).parents[2] / "data/overlap.json").read_text())["simulator_reference"]
RIVALS = (Resource.COMPUTE, Resource.MEMORY, Resource.NETWORK)


def shipped(inflation: float, table: InterferenceTable = PUBLISHED) -> Device:
    whole = layer(2048, PROMPTS_FROM)
    graph = PIPELINES["70B, 2048 tokens"].graph(whole)
    return Device(graph, nano_times(graph, whole, LAYER_SECONDS, inflation), table)


def test_two_operations_beside_each_other_by_hand() -> None:
    """Memory at share 0.4 runs at 0.8 and takes 1/0.8 s; compute does 0.6 of that, then the rest alone."""
    graph = OperationGraph([Operation("mm", Resource.COMPUTE), Operation("read", Resource.MEMORY)], 1)
    launches = {Resource.COMPUTE: [(0, "mm")], Resource.MEMORY: [(0, "read")]}
    spans = Device(graph, {"mm": 2.0, "read": 1.0}, PUBLISHED).simulate(launches, {"mm": 1.0, "read": 0.4})
    assert spans[0, "read"] == pytest.approx((0, 1.25))
    assert spans[0, "mm"] == pytest.approx((0, 1.25 + 2.0 - 0.6 * 1.25))


def test_what_waits_for_a_link_takes_nothing_from_compute() -> None:
    graph = OperationGraph([Operation("mm", Resource.COMPUTE), Operation("sum", Resource.NETWORK)], 1)
    launches = {Resource.COMPUTE: [(0, "mm")], Resource.NETWORK: [(0, "sum")]}
    table = InterferenceTable({Resource.COMPUTE: ((0, 0), (1, 1))})
    spans = Device(graph, {"mm": 2.0, "sum": 3.0}, table).simulate(launches, {"mm": 1.0, "sum": 0.3})
    assert spans == {(0, "mm"): (0.0, 2.0), (0, "sum"): (0.0, 3.0)}


def test_streams_that_wait_for_each_other_for_ever_are_told() -> None:
    graph = OperationGraph([Operation("a", Resource.COMPUTE), Operation("b", Resource.COMPUTE, inputs=("a",))], 1)
    launches = {Resource.COMPUTE: [(0, "b"), (0, "a")]}
    assert Device(graph, {"a": 1.0, "b": 1.0}, PUBLISHED).simulate(launches, {"a": 1.0, "b": 1.0}) == {}


def test_one_after_another_is_the_published_sum() -> None:
    serial = sum(LAYER_SECONDS[each.name] for each in layer(2048, PROMPTS_FROM).operations)
    assert serial * LAYERS * 1e3 == pytest.approx(KNOWN["sequential_ms"])
    assert fraction(serial) == pytest.approx(KNOWN["sequential_frac"])


def test_cutting_without_overlap_costs_what_was_published() -> None:
    """Charged to compute alone, the loss is a quarter of its time."""
    times = shipped(KNOWN["gemm_inflation"]).times
    assert sum(times.values()) * LAYERS * 1e3 == pytest.approx(KNOWN["nano_only_ms"])
    assert fraction(sum(times.values())) == pytest.approx(KNOWN["sequential_frac"] * (1 - NANO_ONLY_LOSS))


@pytest.mark.parametrize(
    ("inflation", "reference"), [(0.25, "DES calibrated s"), (0.10, "DES s=0.10"), (0.0, "DES s=0")]
)
def test_the_shipped_pipeline_with_the_best_shares(inflation: float, reference: str) -> None:
    """Shares 0.4 and 0.2 as another simulation of the same inputs found, and its time within 1.5 %."""
    device = shipped(inflation)
    schedule = Schedule(_both_halves_side_by_side(device), period=1.0, how="by hand")
    drafts = {
        (memory, network): steady(
            device, schedule, uniform(device, {Resource.MEMORY: memory, Resource.NETWORK: network})
        )
        for memory, network in product((0.2, 0.3, 0.4, 0.5, 0.6), (0.1, 0.2, 0.3))
    }
    periods = {pair: found.period for pair, found in drafts.items() if found}
    best = min(periods, key=lambda pair: periods[pair])
    assert best == (KNOWN[reference]["R_mem"], KNOWN[reference]["R_net"])
    assert periods[best] * LAYERS * 1e3 == pytest.approx(KNOWN[reference]["ms"], rel=0.015)


def test_overlapped_is_faster_than_one_after_another_at_any_assumed_loss() -> None:
    for inflation in (0.0, 0.1, 0.2, 0.25):
        device = shipped(inflation)
        schedule = Schedule(_both_halves_side_by_side(device), period=1.0, how="by hand")
        found = steady(device, schedule, uniform(device, {Resource.MEMORY: 0.4, Resource.NETWORK: 0.2}))
        assert found
        assert KNOWN["sequential_frac"] < fraction(found.period) < 0.75


def _both_halves_side_by_side(device: Device) -> dict[str, float]:
    """Launch orders as the public pipeline has them: KQV, then O of both halves, then each half's feed-forward part."""
    compute = ["KQV", "KQV", "KQV", "KQV", "O", "O", "up+gate", "down", "up+gate", "down"]
    left = list(device.graph.on(Resource.COMPUTE))
    places: dict[str, float] = {}
    for place, family in enumerate(compute):
        name = next(each for each in left if device.graph[each].family == family)
        left.remove(name)
        places[name] = place / 100
    rest = [name for name in device.graph.names if name not in places]
    first = [name for name in rest if device.graph.range_of(name)[0] < 640]
    others = [name for name in rest if name not in first]
    network = [name for name in first + others if device.graph[name].resource == Resource.NETWORK]
    network[2], network[3] = network[3], network[2]  # the second half's sum of O before the first half's sum of down
    memory = device.graph.on(Resource.MEMORY)
    return places | {name: place / 100 for each in (network, memory) for place, name in enumerate(each)}


def faster(curve: list[float]) -> tuple[tuple[float, float], ...]:
    speeds = [*sorted(curve), 1.0]
    return ((0.0, 0.0), *zip((0.2, 0.4, 0.6, 0.8, 1.0), speeds, strict=True))


speeds = st.lists(st.floats(0.05, 1.0), min_size=4, max_size=4)


@given(seed=st.integers(0, 1000), low=speeds, gain=st.floats(0.0, 1.0))
@settings(max_examples=40)
def test_partners_that_run_faster_make_no_chain_slower(seed: int, low: list[float], gain: float) -> None:
    """Work that arrives in one order is done no later when memory's P is better at every share.

    (Not so for every graph: an operation that ends earlier may let another begin at a worse time.)
    """
    graph = OperationGraph([Operation("mm", Resource.COMPUTE), Operation("read", Resource.MEMORY)], 1)
    times = {"mm": 1.0 + seed % 7, "read": 1.0 + seed % 5}
    launches = {Resource.COMPUTE: [(0, "mm")], Resource.MEMORY: [(0, "read")]}
    better = [each + (1 - each) * gain for each in low]
    ends = []
    for curve in (low, better):
        table = InterferenceTable({Resource.COMPUTE: ((0, 0), (1, 1)), Resource.MEMORY: faster(curve)})
        spans = Device(graph, times, table).simulate(launches, {"mm": 1.0, "read": 0.4})
        ends.append(max(end for _, end in spans.values()))
    assert ends[1] <= ends[0] + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_a_search_finds_no_longer_period_where_nothing_interferes(seed: int) -> None:
    graph, times = random_graph(seed, 7)
    rivals = search(graph, times, PUBLISHED, seconds=2)
    free = search(graph, times, InterferenceTable({}), seconds=2)
    assert free.period_seconds <= rivals.period_seconds * 1.006


@given(seed=st.integers(0, 1000), size=st.integers(1, 8))
@settings(max_examples=30)
def test_at_no_instant_is_more_than_the_device_given_away(seed: int, size: int) -> None:
    """If speed is share, work done never exceeds time: all of it takes at least as long as one after another."""
    graph, times = random_graph(seed, size, periodic=False)
    table = InterferenceTable(dict.fromkeys(RIVALS, ((0, 0), (1, 1))))
    schedule = list_schedule(graph, times, as_given, periodic=False)
    shares = {name: 0.1 + 0.8 * ((seed + place) % 5) / 5 for place, name in enumerate(graph.names)}
    found = steady(Device(graph, times, table), schedule, shares, periodic=False)
    assert found
    assert found.period >= sum(times.values()) - 1e-9


@pytest.mark.parametrize(
    "curve",
    [
        (),
        ((0, 0),),
        ((0, 0), (1, 0.9)),
        ((0, 0), (0.5, 0.6), (0.7, 0.5), (1, 1)),
        ((0.1, 0), (1, 1)),
        ((0, 0), (0.5, 0), (1, 1)),
        ((1, 1),),
    ],
)
def test_a_curve_that_falls_or_ends_early_is_refused(curve: Any) -> None:
    with pytest.raises(OverlapError, match=r"The speeds of memory must go from share 0 to \(1, 1\) and never fall"):
        InterferenceTable({Resource.MEMORY: curve})


def test_the_published_table_and_its_elided_value() -> None:
    for share, compute, memory in ((0.1, 0.1, 0.2), (0.4, 0.4, 0.8), (0.8, 0.8, 0.85), (1.0, 1.0, 1.0)):
        assert PUBLISHED.speed(Resource.COMPUTE, share) == pytest.approx(compute)
        assert PUBLISHED.speed(Resource.MEMORY, share) == pytest.approx(memory)
    assert PUBLISHED.speed(Resource.NETWORK, 0.4) == pytest.approx(0.5 + 0.4 / 3)
    assert PUBLISHED.speed(Resource.HOST, 0.1) == 1
