"""A mixture of experts in the configuration: its numbers against the workers, its cluster as a file or in place."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from orchestrator.config import CONF, Config, config_from, recorded_config
from orchestrator.errors import UserError

PAIR = "servers: 2\ngpus_per_server: [1, 1]\nintra_bandwidth: 10\nnic_bandwidth: 1\nnic_latency: 1e-5\n"


@pytest.fixture(scope="module", autouse=True)
def _configuration_tree() -> Iterator[None]:
    with initialize_config_dir(str(CONF), version_base="1.3"):
        yield


def configure(*overrides: str) -> Config:
    composed = compose("config", ["task=moe_language_model", *overrides])
    values: Any = OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
    return config_from(values)


def in_place(**keys: object) -> str:
    described = {"servers": 2, "gpus_per_server": 1, "intra_bandwidth": 10, "nic_bandwidth": 1} | keys
    return "task.cluster={" + ",".join(f"{key}:{value}" for key, value in described.items()) + "}"


def test_a_cluster_file_goes_along_with_the_run(tmp_path: Path) -> None:
    file = tmp_path / "pair.yaml"
    file.write_text(PAIR)
    config = configure(f"task.cluster={file}")
    file.unlink()
    assert config.task["cluster"]["nic_latency"] == 1e-5
    assert recorded_config(config.to_json()) == config
    assert configure(in_place(nic_latency="1e-5")) == config


def test_the_topology_may_say_what_the_cluster_is() -> None:
    overrides = ["task.cluster=topology", "cluster.workers=8", "communication=planned"]
    cluster = configure(*overrides, "topology=rail_boxes.yaml").task["cluster"]
    assert (cluster["gpus_per_server"], cluster["intra_bandwidth"]) == ([4, 4], 0.025)
    for missing in (["communication=backend", "topology=rail_boxes.yaml"], ["topology=auto"]):
        with pytest.raises(UserError, match=r"task\.cluster=topology needs communication=planned"):
            configure(*overrides, *missing)
    with pytest.raises(UserError, match="star has not all its ranks on hosts"):
        configure(*overrides, "topology=star.yaml")


def test_without_a_cluster_nothing_is_planned() -> None:
    assert configure().task["cluster"] is None


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("model.experts=1", "model.experts is 1, and cluster.workers=2"),
        ("model.top_k=9", "model.top_k is 9, and must be at least 1 and at most model.experts = 8"),
        ("model.top_k=0", "model.top_k is 0"),
        ("model.every=3", "model.every is 3, and must be at least 1 and at most model.layers = 2"),
        ("model.experts=many", "model.experts"),
        ("task.balance=-1", "task.balance is -1, and must be 0 or more and finite"),
        ("task.balance=nan", "task.balance is nan"),
        (in_place(servers=3), "task.cluster has 3 GPUs and cluster.workers=2"),
        (in_place(nic_bandwidth=0), "task.cluster: nic_bandwidth is 0"),
        (in_place(wires=7), "task.cluster: the key 'wires' is unknown"),
        ("task.cluster=nowhere.yaml", "task.cluster: nowhere.yaml cannot be read"),
        ("task.cluster=7", "task.cluster: a cluster is a mapping"),
        ("model=transformer", "use model=moe_transformer"),
    ],
)
def test_what_cannot_work_is_one_sentence(override: str, sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        configure(override)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
