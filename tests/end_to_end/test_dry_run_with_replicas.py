"""A dry run says what replicas for probes save; too many cost a sentence; a policy that probes nothing needs none."""

from pathlib import Path

import pytest
from commands import SMALL, orchestrate


@pytest.mark.parametrize(
    ("lr", "replicas", "promise"),
    [("autolrs", 1, "640 steps one after another, 1.07 × steps"), ("constant", 99, None)],
)
def test_what_replicas_save(lr: str, replicas: int, promise: str | None, tmp_path: Path) -> None:
    told = orchestrate(tmp_path, "run", *SMALL, f"lr={lr}", f"cluster.probe_replicas={replicas}", "dry_run=true")
    assert told.returncode == 0, told.stderr
    words = " ".join(told.stdout.split())
    assert ("side by side" in words) == (promise is not None)
    assert promise is None or promise in words


def test_a_machine_too_small_for_the_replicas(tmp_path: Path) -> None:
    told = orchestrate(tmp_path, "run", *SMALL, "cluster.probe_replicas=999", "hydra.run.dir=run")
    assert told.returncode == 2
    assert "cluster.workers=2 with cluster.probe_replicas=999 need 2000 × 1 CPU, have" in told.stderr
    assert not (tmp_path / "run" / "journal.jsonl").exists()
