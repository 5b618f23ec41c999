"""Schedules for clusters: every byte arrives, in the published order where asked for, within the published bound."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from comm_plans.all_to_all.birkhoff import published_birkhoff
from comm_plans.all_to_all.bounds import Fluid
from comm_plans.all_to_all.cluster import Cluster
from comm_plans.all_to_all.cluster_verifier import verify_schedule
from comm_plans.all_to_all.flash import pipelined, published
from comm_plans.all_to_all.on_cluster import MODES, cluster_all_to_all
from comm_plans.all_to_all.step_times import completion_seconds
from comm_plans.all_to_all.workloads import KINDS, workload
from comm_plans.errors import PlansError, TrafficError

NEAR = 1e-9
SHAPES = st.one_of(
    st.tuples(st.integers(1, 5), st.integers(1, 4)).map(lambda shape: (shape[1],) * shape[0]),
    st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple),
)


@st.composite
def exchanges(draw: st.DrawFn, shapes: st.SearchStrategy[tuple[int, ...]] = SHAPES) -> tuple[Cluster, np.ndarray]:
    """A cluster and its traffic: sparse or dense, even or skewed, tiny or beyond 4 GiB a pair."""
    sizes = draw(shapes)
    fabric = draw(st.sampled_from(["switch", "mesh"]))
    intra, nic = draw(st.sampled_from([(450.0, 50.0), (448.0, 12.5), (32.0, 25.0)]))
    latencies = draw(st.sampled_from([(0.0, 0.0), (0.3e-6, 2.6e-6)]))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    ranks = sum(sizes)
    scale = draw(st.sampled_from([1, 3, 2**20, 2**36]))
    density = draw(st.sampled_from([0.1, 0.5, 1.0]))
    weights = generator.random((ranks, ranks)) ** draw(st.sampled_from([1, 8]))
    traffic = (scale * weights).round().astype(np.int64) * (generator.random((ranks, ranks)) < density)
    return Cluster(sizes, intra, nic, *latencies, fabric), traffic


@settings(max_examples=100)
@given(exchanges())
def test_every_byte_arrives_once(exchange):
    cluster, traffic = exchange
    for schedule in (published(cluster, traffic), pipelined(cluster, traffic), pipelined(cluster, traffic, chunks=3)):
        verify_schedule(schedule, traffic)
        bound = Fluid(cluster, cluster.tiles(traffic)).lower_bound_seconds
        assert completion_seconds(cluster, schedule.steps()) >= bound * (1 - NEAR)


@settings(max_examples=500)
@given(exchanges(st.tuples(st.integers(2, 6), st.integers(1, 4)).map(lambda shape: (shape[1],) * shape[0])))
def test_the_published_schedule_keeps_its_bound(exchange):
    """T ≤ (1 + 2ρ)(T_inter + (S − 1) bytes / B2) + T_local, without latencies, in whichever order stages are found."""
    cluster, traffic = exchange
    cluster = Cluster(cluster.sizes, cluster.intra_bandwidth, cluster.nic_bandwidth, 0, 0, cluster.intra_fabric)
    fluid = Fluid(cluster, cluster.tiles(traffic))
    steps = published(cluster, traffic).steps()
    local = completion_seconds(cluster, [next(steps)])
    taken = local + completion_seconds(cluster, steps)
    rounding = (cluster.servers - 1) / cluster.nic_bytes
    assert taken <= (1 + 2 * cluster.skew_cost) * (fluid.inter_seconds + rounding) * (1 + NEAR) + local


@settings(max_examples=60)
@given(exchanges(st.tuples(st.integers(2, 6), st.integers(1, 4)).map(lambda shape: (shape[1],) * shape[0])))
def test_the_best_schedule_is_no_slower_than_the_published_one(exchange):
    cluster, traffic = exchange
    assume(cluster.intra_fabric == "switch" and cluster.skew_cost <= 1)
    best, old = (completion_seconds(cluster, MODES[mode](cluster, traffic).steps()) for mode in ("best", "faithful"))
    assert best <= old * (1 + NEAR) + 3 * (cluster.intra_latency * cluster.gpus + cluster.nic_latency)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_named_workloads(kind, mode):
    cluster = Cluster((8,) * 4, 450, 50)
    result = cluster_all_to_all(cluster, workload(kind, 4, 8), mode)
    assert result.verified
    assert result.completion_seconds >= result.lower_bound_seconds


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sizes", [(1,), (8,), (1, 1, 1, 1), (5, 1), (8, 4, 8), (1, 2, 3)])
def test_edges(sizes, mode):
    cluster = Cluster(sizes, 450, 50)
    generator = np.random.default_rng(len(sizes))
    some = generator.integers(0, 9, (cluster.ranks, cluster.ranks))
    lone = np.zeros_like(some)
    lone[-1, 0] = 2**40 + 1
    silent = some.copy()
    silent[0], silent[:, 0] = 0, 0
    for traffic in (some, lone, silent, np.zeros_like(some)):
        result = cluster_all_to_all(cluster, traffic, mode)
        assert result.verified
        assert (result.completion_seconds == 0) == (not (traffic - np.diag(np.diag(traffic))).any())


def test_blocks_beyond_four_gibibytes_keep_every_byte():
    cluster = Cluster((2,) * 3, 450, 50)
    traffic = 2**35 + np.arange(36).reshape(6, 6)
    for mode in MODES:
        schedule = cluster_all_to_all(cluster, traffic, mode).schedule
        moved = sum(int((step.high - step.low)[step.target == step.destination].sum()) for step in schedule.steps())
        assert moved == traffic.sum() - np.trace(traffic)


@pytest.mark.parametrize("mode", MODES)
def test_traffic_is_left_as_it_was_and_the_diagonal_does_not_count(mode):
    cluster = Cluster((2, 2), 450, 50)
    traffic = np.full((4, 4), 1000)
    before = traffic.copy()
    whole = cluster_all_to_all(cluster, traffic, mode).completion_seconds
    assert (traffic == before).all()
    np.fill_diagonal(traffic, 0)
    assert cluster_all_to_all(cluster, traffic, mode).completion_seconds == whole


def test_twice_the_bytes_take_twice_as_long_and_names_of_servers_do_not_matter():
    cluster = Cluster((4,) * 4, 450, 50, 0, 0)
    traffic = workload("zipf0.8", 4, 4)

    def seconds(matrix: np.ndarray) -> float:
        return completion_seconds(cluster, pipelined(cluster, matrix, chunks=16).steps())

    assert seconds(2 * traffic) == pytest.approx(2 * seconds(traffic), rel=1e-3)
    order = (np.array([2, 0, 3, 1])[:, None] * 4 + np.arange(4)).ravel()
    assert seconds(traffic[np.ix_(order, order)]) == pytest.approx(seconds(traffic), rel=0.02)
    there, back = (Fluid(cluster, cluster.tiles(each)).inter_seconds for each in (traffic, traffic.T.copy()))
    assert there == back


def test_schedules_are_the_same_each_time():
    cluster, traffic = Cluster((8,) * 3, 450, 50), workload("random", 3, 8)
    for once, again in zip(pipelined(cluster, traffic).steps(), pipelined(cluster, traffic).steps(), strict=True):
        for column, other in zip(once, again, strict=True):
            assert (column == other).all()


def test_latencies_make_stages_few():
    """64 × 8 random, 1 MiB a pair: what the published schedule loses on 3932 latencies is won back."""
    cluster, traffic = Cluster((8,) * 64, 448, 12.5, 0.3e-6, 2.6e-6), workload("random", 64, 8)
    schedule = pipelined(cluster, traffic)
    taken, bound = completion_seconds(cluster, schedule.steps()), Fluid(cluster, cluster.tiles(traffic)).inter_seconds
    assert schedule.stages < 8 * 64
    assert taken <= bound * 1.05 + 64 * 2.6e-6


def test_wrong_modes_and_sizes_are_refused():
    cluster = Cluster((2, 2), 450, 50)
    with pytest.raises(PlansError, match="no mode; the modes are best, faithful"):
        cluster_all_to_all(cluster, np.zeros((4, 4), np.int64), "fast")
    with pytest.raises(TrafficError, match="is 3 × 3; this cluster has 4 GPUs and needs 4 × 4"):
        cluster_all_to_all(cluster, np.zeros((3, 3), np.int64))


def plain_pieces(cluster: Cluster, traffic: np.ndarray) -> list[tuple[int, ...]]:
    """The published byte map, word for word: (stage, sending place, origin, destination, low, high)."""
    servers, gpus = cluster.servers, cluster.gpus
    tiles = cluster.tiles(traffic)
    quota = Fluid(cluster, tiles).quota
    queues: dict[tuple[int, int, int], list[list[int]]] = defaultdict(list)
    for i in range(servers):
        for j in range(servers):
            if i == j:
                continue
            own = tiles[i, :, j].tolist()
            held = {(g, h, g): [0, own[g][h]] for g in range(gpus) for h in range(gpus)}
            load = [sum(row) for row in own]
            for donor in [g for g in range(gpus) if load[g] > quota[i, j]]:
                for taker in [g for g in range(gpus) if load[g] < quota[i, j]]:
                    for h in range(gpus):
                        low, high = held[donor, h, donor]
                        size = min(load[donor] - quota[i, j], high - low, quota[i, j] - load[taker])
                        if size > 0:
                            held[taker, h, donor] = [low, low + size]
                            held[donor, h, donor] = [low + size, high]
                            load[donor], load[taker] = load[donor] - size, load[taker] + size
            for (g, h, origin), (low, high) in sorted(held.items()):
                if low < high:
                    queues[i, j, g].append([i * gpus + origin, j * gpus + h, low, high])
    pieces = []
    stages = published_birkhoff(quota)
    for stage, (partners, weight) in enumerate(zip(stages.partners.tolist(), stages.weights.tolist(), strict=True)):
        for i, j in enumerate(partners):
            for g in range(gpus):
                room, queue = weight, queues[i, j, g]
                while room > 0 and queue:
                    origin, destination, low, high = queue[0]
                    size = min(room, high - low)
                    pieces.append((stage, i * gpus + g, origin, destination, low, low + size))
                    room, queue[0][2] = room - size, low + size
                    if low + size == high:
                        queue.pop(0)
    return pieces


@settings(max_examples=60)
@given(exchanges(st.tuples(st.integers(2, 4), st.integers(1, 4)).map(lambda shape: (shape[1],) * shape[0])))
def test_bytes_are_mapped_as_published(exchange):
    cluster, traffic = exchange
    first, *columns = published(cluster, traffic).pieces
    card = np.repeat(np.arange(len(first) - 1), np.diff(first))
    places = cluster.servers * cluster.gpus
    found = list(zip(*(column.tolist() for column in (card // places, card % places, *columns)), strict=True))
    assert found == plain_pieces(cluster, traffic)


def test_the_published_steps():
    """Local traffic, all balance, then stages, each redistributed beside the next."""
    cluster, traffic = Cluster((4,) * 4, 450, 50), workload("random", 4, 4)
    schedule = published(cluster, traffic)
    steps = list(schedule.steps())
    assert len(steps) == len(schedule) == schedule.stages + 3
    out = [cluster.server_of[step.source] != cluster.server_of[step.target] for step in steps]
    assert [flags.any() for flags in out] == [False, False, *[True] * schedule.stages, False]
    local = cluster.server_of[steps[0].origin] == cluster.server_of[steps[0].destination]
    assert local.all()
    assert (steps[1].source == steps[1].origin).all()
    assert out[2].all()
    assert (steps[-1].target == steps[-1].destination).all()
