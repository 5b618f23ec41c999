"""Four real Ray nodes on a shaped network train the language model, their gradients along the network's plan."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import ORCHESTRATE, run_folder

ROOT = Path(__file__).parents[2]
LAB = [sys.executable, str(ROOT / "scripts" / "network_lab.py")]
STAR = str(ROOT / "conf" / "topologies" / "star.yaml")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of programs that use the lab, which is up with Ray on every node."""
    environment = {**os.environ, "NETWORK_LAB_STATE": str(tmp_path / "lab.json")}
    try:
        subprocess.run([*LAB, "up", STAR, "--ray"], env=environment, check=True, timeout=400)
        yield environment
    finally:
        subprocess.run([*LAB, "down"], env=environment, check=True, timeout=60)


def test_a_cluster_in_the_lab_trains_by_plan(lab: dict[str, str], tmp_path: Path) -> None:
    arguments = ["cluster=lab", "steps=12", "lr=constant", "communication=planned", "tracking=none", "evaluation=none"]
    ended = subprocess.run(
        [ORCHESTRATE, "run", *arguments, run_folder(tmp_path, "run")],
        cwd=tmp_path, env=lab, capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "all_reduce on star by plan" in ended.stdout
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["state"] == "FINISHED"
    assert result["plan"]["algbw"] == "1/160"
    moved = [json.loads(line) for line in (tmp_path / "run" / "journal.jsonl").read_text().splitlines()]
    measured = next(event for event in moved if event["event"] == "CommunicationMeasured")
    assert measured["rows"]["all_reduce"]["planned_calls"] >= 12
