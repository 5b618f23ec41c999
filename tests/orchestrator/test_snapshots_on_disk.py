"""Snapshots on disk: whole or absent, and a damaged one is passed over with a sentence."""

import json
import pickle
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.cluster import snapshots
from orchestrator.cluster.snapshots import MANIFEST, DamagedSnapshotError, SnapshotStore, require_space, verified
from orchestrator.errors import UserError
from trainers.errors import DataError

CONTENT = {"world_size": 2}


def writing(body: bytes) -> Callable[[Path], dict[str, Any]]:
    def write(folder: Path) -> dict[str, Any]:
        (folder / "shared.safetensors").write_bytes(body)
        return CONTENT

    return write


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    """Two snapshots, of steps 10 and 20."""
    store = SnapshotStore(tmp_path / "snapshots")
    store.save(10, writing(b"ten" * 100))
    store.save(20, writing(b"twenty" * 100))
    return store


def test_the_newest_comes_back_with_what_its_writer_noted(store: SnapshotStore) -> None:
    newest, skipped = store.newest()
    assert newest is not None
    assert (newest.step, newest.content, skipped) == (20, CONTENT, [])
    assert (newest.path / "shared.safetensors").read_bytes() == b"twenty" * 100


def test_no_snapshot_is_no_error(tmp_path: Path) -> None:
    assert SnapshotStore(tmp_path / "nowhere").newest() == (None, [])


def test_steps_count_as_numbers(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path, keep=3)
    for step in (999_999, 1_000_000, 5):
        store.save(step, writing(b"x"))
    newest, _ = store.newest()
    assert newest is not None
    assert newest.step == 1_000_000


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip_a_byte(path: Path) -> None:
    body = bytearray(path.read_bytes())
    body[len(body) // 2] ^= 1
    path.write_bytes(body)


@pytest.mark.parametrize("damage", [truncate, empty, flip_a_byte, Path.unlink])
@pytest.mark.parametrize("name", [MANIFEST, "shared.safetensors"])
def test_a_damaged_snapshot_is_passed_over_and_named(
    store: SnapshotStore, tmp_path: Path, damage: Callable[[Path], None], name: str
) -> None:
    damage(tmp_path / "snapshots" / "step-000020" / name)
    newest, skipped = store.newest()
    assert newest is not None
    assert newest.step == 10
    assert len(skipped) == 1
    assert "step-000020" in skipped[0]
    assert name in skipped[0]


@settings(max_examples=40)
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), name=st.sampled_from([MANIFEST, "part"]))
def test_no_flipped_bit_goes_unnoticed(
    tmp_path_factory: pytest.TempPathFactory, place: float, bit: int, name: str
) -> None:
    folder = tmp_path_factory.mktemp("flipped")
    saved = SnapshotStore(folder).save(1, lambda path: {"bytes": (path / "part").write_bytes(bytes(range(50)))})
    body = bytearray((saved.path / name).read_bytes())
    body[int(place * len(body))] ^= 1 << bit
    (saved.path / name).write_bytes(body)
    try:
        assert verified(saved.path) == saved  # a changed blank of the manifest's outer JSON says the same
        assert name == MANIFEST
    except DamagedSnapshotError:
        pass
    shutil.rmtree(folder)


def test_an_error_while_writing_leaves_the_older_ones(store: SnapshotStore, tmp_path: Path) -> None:
    def write(folder: Path) -> dict[str, Any]:
        (folder / "half").write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        store.save(30, write)
    assert sorted(path.name for path in (tmp_path / "snapshots").iterdir()) == ["step-000010", "step-000020"]


def test_a_kill_while_writing_leaves_the_older_ones(store: SnapshotStore, tmp_path: Path) -> None:
    script = """
import os, signal, sys
from pathlib import Path
from orchestrator.cluster.snapshots import SnapshotStore

def write(folder):
    (folder / "half").write_bytes(b"half")
    os.kill(os.getpid(), signal.SIGKILL)

SnapshotStore(Path(sys.argv[1])).save(30, write)
"""
    root = tmp_path / "snapshots"
    ended = subprocess.run([sys.executable, "-c", script, str(root)], check=False)
    assert ended.returncode == -signal.SIGKILL
    newest, skipped = store.newest()
    assert newest is not None
    assert (newest.step, skipped) == (20, [])
    store.save(30, writing(b"thirty"))
    assert sorted(path.name for path in root.iterdir()) == ["step-000020", "step-000030"]


def test_the_same_step_again_replaces_the_first(store: SnapshotStore) -> None:
    store.save(20, writing(b"again"))
    newest, _ = store.newest()
    assert newest is not None
    assert (newest.path / "shared.safetensors").read_bytes() == b"again"


def test_only_the_last_ones_are_kept(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path, keep=3)
    for step in range(1, 7):
        store.save(step, writing(b"x"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-000004", "step-000005", "step-000006"]


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "a/b", ".hidden", "nul\0", "x" * 300, ""])
def test_a_manifest_cannot_lead_out_of_its_folder(store: SnapshotStore, name: str) -> None:
    newest, _ = store.newest()
    assert newest is not None
    forge(newest.path, {"format": 1, "step": 20, "content": CONTENT, "files": {name: "0" * 64}})
    with pytest.raises(DamagedSnapshotError, match="no file of a snapshot"):
        verified(newest.path)


def test_a_link_out_of_the_folder_is_refused(store: SnapshotStore, tmp_path: Path) -> None:
    newest, _ = store.newest()
    assert newest is not None
    (tmp_path / "elsewhere").write_bytes(b"twenty" * 100)
    (newest.path / "shared.safetensors").unlink()
    (newest.path / "shared.safetensors").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DamagedSnapshotError, match="no file of a snapshot"):
        verified(newest.path)


@pytest.mark.parametrize(
    "manifest", [{"format": 2}, {"format": 1}, {"format": 1, "step": "1", "content": {}, "files": []}]
)
def test_a_manifest_of_another_make_is_refused(store: SnapshotStore, manifest: dict[str, Any]) -> None:
    newest, _ = store.newest()
    assert newest is not None
    forge(newest.path, manifest)
    with pytest.raises(DamagedSnapshotError):
        verified(newest.path)


def test_a_pickle_in_a_snapshot_is_never_executed(store: SnapshotStore, tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "owned",)

    from trainers.snapshot import Snapshot

    saved = store.save(30, writing(pickle.dumps(Evil())))
    with pytest.raises(DataError):
        Snapshot.read(verified(saved.path).path / "shared.safetensors")
    assert not (tmp_path / "owned").exists()


def test_a_nearly_full_disk_is_said_before_anything_is_written(tmp_path: Path) -> None:
    require_space(tmp_path, 1000)
    with pytest.raises(UserError, match="MB free"):
        require_space(tmp_path, shutil.disk_usage(tmp_path).free)


def forge(folder: Path, manifest: dict[str, Any]) -> None:
    """Write a manifest as an attacker would: with the right sum."""
    body = json.dumps(manifest)
    sealed = {"manifest": body, "sha256": snapshots.hashlib.sha256(body.encode()).hexdigest()}
    (folder / MANIFEST).write_text(json.dumps(sealed))
