"""Traffic, bounds, baselines and fluid times against independent reference values."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from comm_plans.all_to_all.baselines import (
    BASELINES,
    hierarchical,
    padded_seconds,
    rail_aligned,
    server_spread_out_seconds,
    spread_out,
)
from comm_plans.all_to_all.birkhoff import birkhoff, published_birkhoff
from comm_plans.all_to_all.bounds import Fluid
from comm_plans.all_to_all.cluster import Cluster
from comm_plans.all_to_all.fair_sharing import fair_fan_out_seconds
from comm_plans.all_to_all.flash import pipelined, published
from comm_plans.all_to_all.stage_times import barrier_seconds, johnson_order, queue_seconds, stage_seconds
from comm_plans.all_to_all.step_times import completion_seconds
from comm_plans.all_to_all.workloads import workload

CASES = json.loads((Path(__file__).parents[2] / "data" / "alltoall.json").read_text())["flash"]
NAMES = [f"{case['S']}x{case['G']} {case['kind']}" for case in CASES]
NEAR = 1e-9
ONE_STAGE = [case for case in CASES if case["profiles"]["H200"]["flash_arbitrary"]["stages"] == 1]


@cache
def traffic_of(kind: str, servers: int, gpus: int) -> np.ndarray:
    return workload(kind, servers, gpus)


def set_up(case: dict, profile: str) -> tuple[Cluster, np.ndarray, dict]:
    values = case["profiles"][profile]
    cluster = Cluster((case["G"],) * case["S"], values["B1"] / 1e9, values["B2"] / 1e9, 0, 0)
    return cluster, traffic_of(case["kind"], case["S"], case["G"]), values


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_traffic_is_that_of_the_reference(case):
    traffic = traffic_of(case["kind"], case["S"], case["G"])
    assert hashlib.sha256(traffic.astype("<i8").tobytes()).hexdigest() == case["sha256"]
    assert traffic.sum() == case["total_bytes"]


@pytest.mark.parametrize("profile", ["H200", "MI300X"])
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_bounds(case, profile):
    cluster, traffic, expected = set_up(case, profile)
    fluid = Fluid(cluster, cluster.tiles(traffic))
    found = {
        "T_inter_LB": fluid.inter_seconds,
        "T_gpu_agg_LB": fluid.gpu_seconds,
        "LB": fluid.lower_bound_seconds,
        "T_direct_LB": fluid.direct_seconds,
        "T_balance_switch": fluid.fabric_seconds(fluid.balance),
        "T_intrinsic": fluid.fabric_seconds(fluid.local),
        "T_intra_total": fluid.fabric_total_seconds,
        "T_pipelined_fluid": max(fluid.inter_seconds, fluid.fabric_total_seconds),
        "rho": cluster.skew_cost,
    }
    assert found == pytest.approx({name: expected[name] for name in found}, rel=NEAR)


@pytest.mark.parametrize("profile", ["H200", "MI300X"])
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_baselines(case, profile):
    cluster, traffic, expected = set_up(case, profile)
    found = {
        "T_spreadout_gpu": completion_seconds(cluster, spread_out(cluster, traffic)),
        "T_spreadout_server_inter_only": server_spread_out_seconds(cluster, traffic),
        "T_hier": completion_seconds(cluster, hierarchical(cluster, traffic)),
        "T_rail_src": completion_seconds(cluster, [next(rail_aligned(cluster, traffic))]),
        "T_padded_balanced": padded_seconds(cluster, traffic),
    }
    if "T_fanout_maxmin" in expected:
        found["T_fanout_maxmin"] = fair_fan_out_seconds(cluster, traffic)
    assert found == pytest.approx({name: expected[name] for name in found}, rel=NEAR)


def test_rails_carry_traffic_beside_the_fabric():
    """4 bytes a pair: first 4 on each card beside 4 inside, then what came for the neighbour."""
    cluster = Cluster((2, 2), 1e-9, 0.5e-9, 0, 0)
    steps = list(rail_aligned(cluster, np.full((4, 4), 4)))
    inside = [int((cluster.server_of[step.source] == cluster.server_of[step.target]).sum()) for step in steps]
    assert inside == [4, 4]
    assert completion_seconds(cluster, steps) == pytest.approx(8 / 0.5 + 4)


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_never_beats_the_bound(name):
    cluster = Cluster((4, 2, 3), 450, 50, 0, 0)
    traffic = np.random.default_rng(3).integers(0, 2**20, (9, 9))
    bound = Fluid(cluster, cluster.tiles(traffic)).lower_bound_seconds
    assert completion_seconds(cluster, BASELINES[name](cluster, traffic)) >= bound


@pytest.mark.parametrize("fabric", ["switch", "mesh"])
def test_traffic_inside_servers_counts_in_every_baseline(fabric):
    """7 messages of 1 MiB from each GPU of one server: one after another through a switch, at once over a mesh."""
    cluster = Cluster((8,), 448, 50, 1e-6, 1e-6, fabric)
    traffic = np.full((8, 8), 2**20)
    expected = 7 * 2**20 / 448e9 + (7e-6 if fabric == "switch" else 1e-6)
    times = [padded_seconds(cluster, traffic), fair_fan_out_seconds(cluster, traffic)]
    times += [
        completion_seconds(cluster, BASELINES[name](cluster, traffic)) for name in ("rail-aligned", "hierarchical")
    ]
    assert times == pytest.approx([expected] * 4)


@pytest.mark.parametrize("profile", ["H200", "MI300X"])
@pytest.mark.parametrize("case", ONE_STAGE, ids=lambda case: f"{case['S']}x{case['G']} {case['kind']}")
def test_fluid_times_of_single_stages(case, profile):
    """With one stage nothing depends on the order in which matchings are found."""
    cluster, traffic, expected = set_up(case, profile)
    fluid = Fluid(cluster, cluster.tiles(traffic))
    parts = fluid.fabric_seconds(fluid.balance), fluid.fabric_seconds(fluid.local)
    for decompose, key in ((published_birkhoff, "flash_arbitrary"), (birkhoff, "flash_ladder0.8")):
        sending, handing = stage_seconds(fluid, decompose(fluid.quota))
        assert queue_seconds(sending, handing, *parts) == pytest.approx(expected[key]["T_natural"], rel=1e-6)
        serial = queue_seconds(sending, handing, *parts[:1], 0.0) + parts[1]
        assert barrier_seconds(sending, handing, *parts) == pytest.approx(serial, rel=NEAR)


@pytest.mark.parametrize("profile", ["H200", "MI300X"])
@pytest.mark.parametrize("case", [case for case in CASES if case["S"] <= 16], ids=lambda case: case["kind"])
def test_fluid_times_of_many_stages(case, profile):
    """The bound holds in Johnson's order, which is never slower than the order found."""
    cluster, traffic, expected = set_up(case, profile)
    fluid = Fluid(cluster, cluster.tiles(traffic))
    balance, local = fluid.fabric_seconds(fluid.balance), fluid.fabric_seconds(fluid.local)
    for decompose in (published_birkhoff, birkhoff):
        sending, handing = stage_seconds(fluid, decompose(fluid.quota))
        order = johnson_order(sending, handing)
        best = queue_seconds(sending[order], handing[order], balance, local)
        assert best <= queue_seconds(sending, handing, balance, local) * (1 + NEAR)
        rho, rounding = expected["rho"], (cluster.servers - 1) / cluster.nic_bytes
        stage = rho * sending.max(initial=0.0)
        bound = expected["T_inter_LB"] * (1 + rho) + stage + rounding
        assert best <= max(bound, balance + handing.sum() + local) * (1 + NEAR)


def test_the_worst_skew_costs_the_published_schedule_its_bound():
    for profile, worst in (("H200", 1 + 2 * 7 * 50 / 450), ("MI300X", 1 + 2 * 7 * 12.5 / 448)):
        (case,) = [case for case in CASES if (case["S"], case["G"], case["kind"]) == (8, 8, "adv_gpu0")]
        cluster, traffic, expected = set_up(case, profile)
        taken = completion_seconds(cluster, published(cluster, traffic).steps())
        assert taken / expected["LB"] == pytest.approx(worst, rel=NEAR)


@pytest.mark.parametrize("profile", ["H200", "MI300X"])
@pytest.mark.parametrize("case", [case for case in CASES if case["S"] <= 16], ids=lambda case: case["kind"])
def test_sixteen_chunks_come_near_what_no_schedule_beats(case, profile):
    cluster, traffic, expected = set_up(case, profile)
    taken = completion_seconds(cluster, pipelined(cluster, traffic, chunks=16).steps())
    assert taken >= expected["LB"] * (1 - NEAR)
    assert taken <= 1.05 * max(expected["LB"], expected["T_intra_total"])


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["H200", "MI300X"])
@pytest.mark.parametrize("case", [case for case in CASES if case["S"] > 16], ids=lambda case: case["kind"])
def test_sixteen_chunks_also_on_large_clusters(case, profile):
    test_sixteen_chunks_come_near_what_no_schedule_beats(case, profile)
