"""The cost model, against every published or recomputed value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trainers.overlap.cost_model import (
    WORKLOADS,
    Cost,
    Workload,
    iteration,
    operation_costs,
    optimal_tokens_per_second,
)
from trainers.overlap.hardware import A100, A100_ATTAINED_FLOPS, HARDWARE
from trainers.overlap.operations import Resource
from trainers.overlap.transformer_sizes import MODELS

KNOWN: dict[str, Any] = json.loads((Path(__file__).parents[2] / "data/overlap.json").read_text())
CASES = [(model, device) for model in MODELS for device in HARDWARE]
ROWS = {"KQV": "KQV", "O": "O", "UG": "up+gate", "D": "down", "Net": "collectives"}


@pytest.mark.parametrize("row", ROWS)
def test_every_cell_of_the_operation_table(row: str) -> None:
    """LLaMA-2-70B on eight A100, 2048 tokens; recomputed from shapes to each printed digit."""
    known = KNOWN["operation_table"][row]
    cost = operation_costs(MODELS["LLaMA-2-70B"], 2048)[ROWS[row]]
    seconds = cost.seconds(A100, 8)
    assert round(cost.flops / 1e9, 1) == known["GFLOP"]
    assert round(cost.memory_bytes / 1e9, 1) == known["mem_GB"]
    assert round(cost.network_bytes / 1e9, 1) == known["net_GB"]
    assert round(seconds[Resource.COMPUTE] * 1e3, 2) == known["T_comp_ms"]
    assert round(seconds[Resource.MEMORY] * 1e3, 2) == known["T_mem_ms"]
    assert round(seconds[Resource.NETWORK] * 1e3, 2) == known["T_net_ms"]


def test_attention_and_the_sums_of_the_table_follow_from_its_operations_and_bytes() -> None:
    decode = Cost(3665.9e9, 462.2e9).seconds(A100, 8)
    prefill = Cost(916.3e9, 2.8e9).seconds(A100, 8)
    dense = [cost.seconds(A100, 8) for cost in operation_costs(MODELS["LLaMA-2-70B"], 2048).values()]
    assert round(decode[Resource.COMPUTE] * 1e3, 2) == 1.47
    assert round(decode[Resource.MEMORY] * 1e3, 2) == KNOWN["operation_table"]["published_est"]["DecAttn"]["T_mem_ms"]
    assert round(prefill[Resource.COMPUTE] * 1e3, 2) == 0.37
    compute = sum(each[Resource.COMPUTE] for each in [*dense, decode, prefill])
    memory = sum(each[Resource.MEMORY] for each in [*dense, decode, prefill]) + 75.16e9 / 16e12
    assert compute * 1e3 == pytest.approx(KNOWN["operation_table"]["published_est"]["sum_T_comp_ms"], abs=0.02)
    assert memory * 1e3 == pytest.approx(KNOWN["operation_table"]["published_est"]["sum_T_mem_ms"], abs=0.02)


@pytest.mark.parametrize(("model", "device"), CASES)
def test_the_class_of_every_workload(model: str, device: str) -> None:
    """7 models × 6 workloads a device: requests, tokens, the three times, their ratios and the class."""
    for workload, known in KNOWN["classification"][model][device].items():
        found = iteration(MODELS[model], HARDWARE[device], WORKLOADS[workload])
        compute, memory, network = (
            found.seconds[each] for each in (Resource.COMPUTE, Resource.MEMORY, Resource.NETWORK)
        )
        assert (round(found.requests, 5), round(found.tokens, 5)) == (known["B_req"], known["B_dense"])
        assert [round(each, 5) for each in (memory, compute, network)] == [
            known["T_mem_s"],
            known["T_comp_s"],
            known["T_net_s"],
        ]
        assert round(memory / compute, 5) == known["Tmem/Tcomp"]
        assert round(network / compute, 5) == known["Tnet/Tcomp"]
        assert found.bound == known["bound"]


def test_sizes_follow_from_shapes() -> None:
    for name, model in MODELS.items():
        known = KNOWN["models"][name]
        assert model.parameters == known["P_total"]
        assert model.active_parameters == known["P_active_matmul"]
        assert model.token_bytes == known["kv_bytes_per_token"]


@pytest.mark.parametrize("name", MODELS)
def test_the_optimum_of_every_model(name: str) -> None:
    known = KNOWN["optimal_tokens_per_s_per_gpu"][name]
    for teraflops in (260, 280, 312):
        nominal = optimal_tokens_per_second(teraflops * 1e12, MODELS[name].nominal)
        active = optimal_tokens_per_second(teraflops * 1e12, MODELS[name].active_parameters)
        assert round(nominal, 1) == known[f"{teraflops}TF_P_nominal"]
        assert round(active, 1) == known[f"{teraflops}TF_P_active_matmul"]
    for device, hardware in HARDWARE.items():
        peak = optimal_tokens_per_second(hardware.flops, MODELS[name].nominal)
        assert round(peak, 1) == known[f"{device}_peak_P_nominal"]


def test_the_published_optimum() -> None:
    assert round(optimal_tokens_per_second(A100_ATTAINED_FLOPS, 70e9), 2) == 1857.14
    found = iteration(MODELS["LLaMA-2-70B"], A100, WORKLOADS["512-512"])
    assert found.tokens_per_second == pytest.approx(optimal_tokens_per_second(312e12, 70e9))


def test_what_a_request_holds_on_average_is_a_parameter() -> None:
    model = MODELS["LLaMA-2-70B"]
    half, all_of_it = (iteration(model, A100, Workload(512, 512, answered)) for answered in (0.5, 1.0))
    assert all_of_it.requests == pytest.approx(half.requests * 768 / 1024)
    assert all_of_it.tokens == 2 * all_of_it.requests


def test_memory_limits_what_reads_more_than_it_computes() -> None:
    found = iteration(MODELS["LLaMA-3-8B"], A100, WORKLOADS["512-1024"])
    assert found.bound == Resource.MEMORY
    assert found.tokens_per_second < optimal_tokens_per_second(A100.flops, 8e9)
