"""Snapshots that were damaged, disks that fill up, two drivers on one folder, clocks that jump."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from harness import CONSTANT, ORCHESTRATE, Run, StartRun, happened, same_outcome, trained

from orchestrator.events import Recovered, RunResumed, SnapshotFailed, SnapshotSaved, Warned

TWO_STAGES = [*CONSTANT, "lr.stages=2"]


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 MB."""
    place = tmp_path / "small"
    place.mkdir()
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", place]).returncode:
        pytest.skip("mounting a small file system takes root")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("damage", [truncate, empty, flip_a_byte])
def test_a_damaged_snapshot_is_passed_over(run: StartRun, constant: Run, damage: Callable[[Path], None]) -> None:
    disturbed = run(*TWO_STAGES, "snapshot_every_steps=50").start()
    disturbed.wait_for(happened(SnapshotSaved, 3))
    newest = disturbed.folder / disturbed.told(SnapshotSaved)[-1].path
    damage(newest / "shared.safetensors")
    disturbed.signal_worker(1, signal.SIGKILL)
    assert disturbed.ended() == 0, disturbed.output()
    same_outcome(disturbed, constant)
    assert any(
        f"{newest} is not used: shared.safetensors has changed" in each.message for each in disturbed.told(Warned)
    )
    assert disturbed.told(Recovered)[0].step < int(newest.name.split("-")[1])


@pytest.mark.slow
def test_a_full_disk_pauses_snapshots_and_the_run_finishes(run: StartRun, small_disk: Path) -> None:
    large = [*TWO_STAGES, "snapshot_every_steps=20", "+task.size=2048"]  # half a megabyte of state
    undisturbed = run(*large).start()
    disturbed = run(*large, place=small_disk).start()
    disturbed.wait_for(happened(SnapshotSaved, 2))
    ballast = small_disk / "ballast"

    def full(run: Run) -> bool:
        """Fill the disk up, but for what the journal needs, until a snapshot finds no room."""
        with ballast.open("ab", buffering=0) as file, suppress(OSError):
            file.write(bytes(max(0, shutil.disk_usage(small_disk).free - 300_000)))
        return happened(SnapshotFailed)(run)

    disturbed.wait_for(full)
    (failed,) = disturbed.told(SnapshotFailed)
    assert "training goes on" in failed.reason
    ballast.unlink()
    assert disturbed.ended() == 0, disturbed.output()
    assert undisturbed.ended() == 0
    same_outcome(disturbed, undisturbed)
    assert disturbed.told(SnapshotSaved)[-1].step == 240


@pytest.mark.slow
def test_a_disk_that_fills_while_a_snapshot_is_written_keeps_the_last_good_one(run: StartRun, constant: Run) -> None:
    disturbed = run(*TWO_STAGES, "snapshot_every_steps=20").start()
    disturbed.wait_for(happened(SnapshotSaved, 2))
    disturbed.order(0, "full")
    disturbed.wait_for(happened(SnapshotFailed))
    kept = disturbed.snapshots()
    assert kept
    disturbed.order(0, "free")
    disturbed.wait_for(lambda run: not run.orders.exists())
    assert disturbed.ended() == 0, disturbed.output()
    same_outcome(disturbed, constant)
    (failed,) = disturbed.told(SnapshotFailed)
    assert "rank 0 could not write it" in failed.reason
    assert "File too large" in failed.reason
    assert disturbed.told(SnapshotSaved)[-1].step == 240


@pytest.mark.slow
def test_two_drivers_on_one_folder(run: StartRun, constant: Run) -> None:
    first = run(*TWO_STAGES).start()
    first.wait_for(trained(20))
    second = subprocess.run(
        [ORCHESTRATE, "resume", str(first.folder), "task._target_=slow_task.SlowTask"], capture_output=True, text=True
    )
    assert second.returncode == 2
    assert f"{first.folder} is being worked on by process {first.pid} on " in second.stderr
    assert first.ended() == 0
    same_outcome(first, constant)


@pytest.mark.slow
@pytest.mark.parametrize("days", [-400, 400])
def test_a_clock_that_jumps(run: StartRun, constant: Run, days: int) -> None:
    disturbed = run(*TWO_STAGES, "snapshot_every_steps=50", environment={"JUMP_DAYS": str(days)}).start()
    disturbed.wait_for(trained(130))
    disturbed.signal_worker(0, signal.SIGKILL)
    assert disturbed.ended() == 0, disturbed.output()
    same_outcome(disturbed, constant)
    assert 0 < disturbed.result()["wall_seconds"] < 1000


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_driver_that_ends_within_a_stage_is_taken_up_there(run: StartRun, constant: Run, number: int) -> None:
    disturbed = run(*TWO_STAGES, "snapshot_every_steps=20").start()
    disturbed.wait_for(trained(70))
    os.kill(disturbed.pid, number)
    assert disturbed.ended() == (-number if number == signal.SIGKILL else 128 + number)
    disturbed.resume()
    assert disturbed.ended() == 0, disturbed.output()
    same_outcome(disturbed, constant)
    (resumed,) = disturbed.told(RunResumed)
    assert resumed.snapshot is not None
    assert 20 <= resumed.step < 120
