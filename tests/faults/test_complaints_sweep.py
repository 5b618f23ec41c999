"""What people report of sweeps elsewhere: failures that hide, runs that are made again, runs that cannot go on."""

import json
import shutil
from pathlib import Path

import pytest
from commands import orchestrate

SMALL = ["task=tabular", "tracking=none", "steps=20", "lr=constant", "cluster.workers=1"]


def test_every_failure_of_a_sweep_is_told_hydra_2284(tmp_path: Path) -> None:
    """Not the first one alone, and not for the price of those that work."""
    place = f"hydra.sweep.dir={tmp_path / 'sweep'}"
    ended = orchestrate(tmp_path, "run", "-m", *SMALL, "dry_run=true", place, "lr.rate=-1,0.01,-2")
    assert ended.returncode == 2
    assert [rate for rate in (-1, 0.01, -2) if f"lr.rate is {rate}" in ended.stderr] == [-1, -2]
    assert len(ended.stderr.splitlines()) == 2


@pytest.mark.slow
def test_a_sweep_that_is_started_again_makes_only_what_is_missing_ray_8647(tmp_path: Path) -> None:
    """Its second run is gone, as if the sweep had been killed before; a run within a sweep can be resumed besides."""
    sweep = ["run", "-m", *SMALL, f"hydra.sweep.dir={tmp_path / 'sweep'}", "lr.rate=0.01,0.02"]
    assert orchestrate(tmp_path, *sweep).returncode == 0
    first, second = tmp_path / "sweep" / "0", tmp_path / "sweep" / "1"
    kept, expected = (first / "result.json").read_bytes(), json.loads((second / "result.json").read_text())
    shutil.rmtree(second)
    again = orchestrate(tmp_path, *sweep)
    assert "already holds a run" in again.stderr
    assert (first / "result.json").read_bytes() == kept
    made = json.loads((second / "result.json").read_text())
    assert made["weights_sha256"] == expected["weights_sha256"]


@pytest.mark.slow
def test_a_run_within_a_sweep_can_be_resumed_wandb(tmp_path: Path) -> None:
    """Killed at its end, so that its journal lacks the last lines."""
    place = f"hydra.sweep.dir={tmp_path / 'sweep'}"
    assert orchestrate(tmp_path, "run", "-m", *SMALL, place, "lr.rate=0.01").returncode == 0
    folder = tmp_path / "sweep" / "0"
    expected = json.loads((folder / "result.json").read_text())
    lines = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "journal.jsonl").write_bytes(b"".join(lines[:4]))
    (folder / "result.json").unlink()
    ended = orchestrate(tmp_path, "resume", str(folder))
    assert ended.returncode == 0, ended.stderr
    assert json.loads((folder / "result.json").read_text())["weights_sha256"] == expected["weights_sha256"]
