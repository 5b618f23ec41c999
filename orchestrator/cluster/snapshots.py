"""Snapshots on disk: a folder a step, whole or absent, every byte accounted for by a manifest of SHA-256 sums.

A folder is filled under a temporary name, synced, and renamed, so that a crash leaves the previous snapshots and a
leftover that the next save sweeps away. What is in the files is their writer's business; nothing here executes it.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.errors import UserError

Json = dict[str, Any]

MANIFEST = "manifest.json"
_FORMAT = 1
_NAME = re.compile(r"step-(\d{6,18})")
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MANIFEST_TYPES = {"step": int, "content": dict, "files": dict}
_LARGEST_MANIFEST = 16 * 1024**2  # bytes


class DamagedSnapshotError(UserError):
    """A snapshot folder that is not what its manifest says; the sentence names the file."""


@dataclass(frozen=True)
class StoredSnapshot:
    """A snapshot that verified. `content` is what its writer noted about it."""

    path: Path
    step: int
    content: Json


class SnapshotStore:
    """The snapshots of one run, in the folder `root`; keeps the newest `keep` of them."""

    def __init__(self, root: Path, keep: int = 2) -> None:
        self._root, self._keep = root, keep

    def save(self, step: int, write: Callable[[Path], Json]) -> StoredSnapshot:
        """Let `write` fill an empty folder, and give it its name once all of it is on disk.

        `write` returns JSON to keep in the manifest. On any error, a full disk say, the older snapshots stay.
        """
        self._root.mkdir(parents=True, exist_ok=True)
        self._sweep()
        final = self._root / f"step-{step:06d}"
        unfinished = self._root / f".unfinished-{final.name}"
        unfinished.mkdir()
        try:
            content = write(unfinished)
            _seal(unfinished, {"format": _FORMAT, "step": step, "content": content})
            if final.exists():
                shutil.rmtree(final)
            unfinished.rename(final)
            _sync(self._root)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        self._prune()
        return StoredSnapshot(final, step, content)

    def newest(self) -> tuple[StoredSnapshot | None, list[str]]:
        """The newest snapshot that verifies, and a sentence on each newer one that does not."""
        skipped: list[str] = []
        for path in reversed(self._folders()):
            try:
                return verified(path), skipped
            except DamagedSnapshotError as error:
                skipped.append(str(error))
        return None, skipped

    def _folders(self) -> list[Path]:
        """Snapshot folders, oldest first."""
        if not self._root.is_dir():
            return []
        named = [(match, path) for path in self._root.iterdir() if (match := _NAME.fullmatch(path.name))]
        return [path for _, path in sorted(named, key=lambda pair: int(pair[0][1])) if path.is_dir()]

    def _sweep(self) -> None:
        for path in self._root.glob(".unfinished-*"):
            shutil.rmtree(path)

    def _prune(self) -> None:
        for path in self._folders()[: -self._keep]:
            shutil.rmtree(path)


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
    """Raise UserError unless twice `size` bytes are free where `folder` lies."""
    free = shutil.disk_usage(folder).free
    if free < 2 * size:
        raise UserError(
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
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(path, f"{MANIFEST} cannot be read") from error
    if manifest.get("format") != _FORMAT:
        raise _damaged(path, f"it is of format {manifest.get('format')}, this version reads format {_FORMAT}")
    if not all(isinstance(manifest.get(key), kind) for key, kind in _MANIFEST_TYPES.items()):
        raise _damaged(path, f"{MANIFEST} lacks one of {', '.join(_MANIFEST_TYPES)}")
    return manifest


def _damaged(path: Path, what: str) -> DamagedSnapshotError:
    return DamagedSnapshotError(f"The snapshot {path} is not used: {what}.")
