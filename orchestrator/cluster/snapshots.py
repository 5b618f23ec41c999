"""Snapshots on disk: a folder a step, whole or absent, every byte accounted for by a manifest of SHA-256 sums.

A folder is filled under a temporary name, synced, and renamed, so that a crash leaves the previous snapshots and a
leftover that the next save sweeps away. What is in the files is their writer's business; nothing here executes it.
"""

import hashlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.errors import UserError

Json = dict[str, Any]

MANIFEST = "manifest.json"
_FORMAT = 1
_WITHIN = "-within"  # a stage; snapshots of a stage's end have no such word
_NAME = re.compile(rf"step-\d{{6,18}}({_WITHIN})?")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MANIFEST_TYPES = {"step": int, "content": dict, "files": dict}
_LARGEST_MANIFEST = 256 * 1024**2  # bytes; within a stage it has the losses so far


class DamagedSnapshotError(UserError):
    """A snapshot folder that is not what its manifest says; the sentence names the file."""


class NoSpaceError(UserError):
    """The disk is too full for a snapshot."""


@dataclass(frozen=True)
class StoredSnapshot:
    """A snapshot that verified. `content` is what its writer noted about it."""

    path: Path
    step: int
    content: Json


class SnapshotStore:
    """The snapshots of one run, in the folder `root`; keeps the newest `keep` of them, and the newest of a stage's end.

    Those of a stage's end and those within a stage have names of different kinds.
    """

    def __init__(self, root: Path, keep: int = 2) -> None:
        self._root, self._keep = root, keep

    def save(self, step: int, write: Callable[[Path], Json]) -> StoredSnapshot:
        """Let `write` fill an empty folder, and give it its name once all of it is on disk.

        `write` returns JSON to keep in the manifest. On any error, a full disk say, the older snapshots stay.
        """
        unfinished = self.begin()
        try:
            return self.seal(unfinished, step, write(unfinished))
        except BaseException:
            self.abandon(unfinished)
            raise

    def begin(self) -> Path:
        """An empty folder for the files of the next snapshot."""
        self._root.mkdir(parents=True, exist_ok=True)
        self._sweep()
        unfinished = self._root / f".unfinished-{uuid.uuid4().hex[:8]}"
        unfinished.mkdir()
        return unfinished

    def seal(self, unfinished: Path, step: int, content: Json, within: bool = False) -> StoredSnapshot:
        """Note `content` beside the files and give the folder its name once all of it is on disk."""
        _seal(unfinished, {"format": _FORMAT, "step": step, "content": content})
        final = self._root / f"step-{step:06d}{_WITHIN if within else ''}"
        if final.exists():
            shutil.rmtree(final)
        unfinished.rename(final)
        _sync(self._root)
        self._prune()
        return StoredSnapshot(final, step, content)

    def abandon(self, unfinished: Path) -> None:
        """Remove what will never be whole."""
        shutil.rmtree(unfinished, ignore_errors=True)

    def newest(
        self, serves: Callable[[StoredSnapshot], bool] = lambda _: True
    ) -> tuple[StoredSnapshot | None, list[str]]:
        """The newest snapshot that verifies and serves, and a sentence on each newer one that does not verify."""
        skipped: list[str] = []
        for path in reversed(self._folders()):
            try:
                if serves(snapshot := verified(path)):
                    return snapshot, skipped
            except DamagedSnapshotError as error:
                skipped.append(str(error))
        return None, skipped

    def discard_after(self, step: int) -> None:
        """Remove the snapshots of later steps: nobody goes back to them, and they would push out newer ones."""
        for path in self._folders():
            if _step(path) > step:
                shutil.rmtree(path)

    def _folders(self) -> list[Path]:
        """Snapshot folders, oldest first."""
        if not self._root.is_dir():
            return []
        named = [path for path in self._root.iterdir() if _NAME.fullmatch(path.name) and path.is_dir()]
        return sorted(named, key=_step)

    def _sweep(self) -> None:
        for path in self._root.glob(".unfinished-*"):
            shutil.rmtree(path, ignore_errors=True)  # workers that are just ending may still write there

    def _prune(self) -> None:
        folders = self._folders()
        stage_end = [path for path in folders if not path.name.endswith(_WITHIN)][-1:]
        for path in folders[: -self._keep]:
            if path not in stage_end:
                shutil.rmtree(path)


def _step(path: Path) -> int:
    return int(path.name.removeprefix("step-").removesuffix(_WITHIN))


def verified(path: Path) -> StoredSnapshot:
    """Read every byte of a snapshot folder against its manifest. Raises DamagedSnapshotError naming what differs."""
    manifest = _read_manifest(path)
    for name, expected in manifest["files"].items():
        if not _FILE_NAME.fullmatch(name) or (path / name).is_symlink():
            raise _damaged(path, f"its manifest names {name!r}, which is no file of a snapshot")
        if not (path / name).is_file():
            raise _damaged(path, f"{name} is missing")
        if file_sum(path / name) != expected:
            raise _damaged(path, f"{name} has changed since it was written")
    return StoredSnapshot(path, manifest["step"], manifest["content"])


def require_space(folder: Path, size: int) -> None:
    """Raise NoSpaceError unless twice `size` bytes are free where `folder` lies."""
    free = shutil.disk_usage(folder).free
    if free < 2 * size:
        raise NoSpaceError(
            f"{folder.parent} has {free / 1e6:.0f} MB free, and a snapshot needs {2 * size / 1e6:.0f} MB to be safe; "
            "free some space, or set outputs= to a larger disk"
        )


def file_sum(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _seal(folder: Path, manifest: Json) -> None:
    """Sync every file and write the manifest, which comes last: without it the rest counts for nothing."""
    files = sorted(path for path in folder.iterdir())
    for path in files:
        _sync(path)
    manifest["files"] = {path.name: file_sum(path) for path in files}
    body = json.dumps(manifest, sort_keys=True, allow_nan=False)
    own_sum = hashlib.sha256(body.encode()).hexdigest()
    (folder / MANIFEST).write_text(json.dumps({"manifest": body, "sha256": own_sum}))
    _sync(folder / MANIFEST)
    _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read_manifest(path: Path) -> Json:
    try:
        with (path / MANIFEST).open("rb") as file:
            sealed = json.loads(file.read(_LARGEST_MANIFEST))
        if hashlib.sha256(sealed["manifest"].encode()).hexdigest() != sealed["sha256"]:
            raise _damaged(path, f"{MANIFEST} has changed since it was written")
        manifest: Json = json.loads(sealed["manifest"])
    except FileNotFoundError as error:
        raise _damaged(path, f"{MANIFEST} is missing") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(path, f"{MANIFEST} cannot be read") from error
    if not isinstance(manifest, dict):
        raise _damaged(path, f"{MANIFEST} holds no mapping")
    if manifest.get("format") != _FORMAT:
        raise _damaged(path, f"it is of format {manifest.get('format')}, this version reads format {_FORMAT}")
    if not all(isinstance(manifest.get(key), kind) for key, kind in _MANIFEST_TYPES.items()):
        raise _damaged(path, f"{MANIFEST} lacks one of {', '.join(_MANIFEST_TYPES)}")
    return manifest


def _damaged(path: Path, what: str) -> DamagedSnapshotError:
    return DamagedSnapshotError(f"The snapshot {path} is not used: {what}.")
