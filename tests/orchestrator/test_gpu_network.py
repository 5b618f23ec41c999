"""topology=auto where workers have GPUs: what nvidia-smi prints on the nodes becomes the network, or a sentence."""

from pathlib import Path

import pytest

from comm_plans.errors import PlansError
from comm_plans.fabrics import fabric
from orchestrator.cluster.nodes import Node, reported_matrix
from orchestrator.errors import UserError
from orchestrator.network import site

BOX = (Path(__file__).parents[1] / "data" / "topology_inputs" / "dgx_a100.txt").read_text()
NODES = (Node("10.0.0.1", "alpha", {"CPU": 2.0}), Node("10.0.0.2", "beta", {"CPU": 2.0}))


def test_two_boxes_are_joined_by_their_cards_and_ranks_pinned_to_their_nodes() -> None:
    where = site("auto", "local", 16, 1, NODES, lambda: [], lambda: [BOX, BOX])
    assert where.topology.key == fabric("dgx_a100:boxes=2").key
    assert list(where.topology.hosts) == ["10.0.0.1", "10.0.0.2"]
    assert where.pins == ("node:10.0.0.1",) * 8 + ("node:10.0.0.2",) * 8
    assert "assuming 300 GB/s for NV12" in (where.remark or "")


def test_the_gpus_of_one_machine_are_a_network_too() -> None:
    where = site("auto", "local", 8, 1, NODES[:1], lambda: [], lambda: [BOX])
    assert where.topology.key == fabric("dgx_a100").key


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ([BOX, BOX[:200]], r"10\.0\.0\.2: .*(cut|missing)"),
        ([BOX, None], r"nvidia-smi topo -m tells nothing on 10\.0\.0\.2"),
        ([BOX, ""], r"nvidia-smi topo -m tells nothing on 10\.0\.0\.2"),
        ([BOX, BOX], r"finds 16 GPUs and cluster\.workers=4"),
    ],
)
def test_what_does_not_fit_is_a_sentence(told: list[str | None], sentence: str) -> None:
    with pytest.raises((UserError, PlansError), match=sentence):
        site("auto", "local", 4, 1, NODES, lambda: [], lambda: told)


def test_a_node_is_asked_by_a_process_and_may_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert reported_matrix() is None
    tool = tmp_path / "nvidia-smi"
    tool.write_text('#!/bin/sh\necho "$@"\n')
    tool.chmod(0o755)
    assert reported_matrix() == "topo -m\n"
    tool.write_text("#!/bin/sh\nexit 9\n")
    assert reported_matrix() is None
