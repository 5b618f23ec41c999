"""What lies in a run folder, changed by a stranger: the journal, snapshots, the result."""

import hashlib
import json
import random
from functools import cache
from pathlib import Path
from typing import Any

from fuzz_parts.examples import ROOT
from fuzz_parts.mutations import mutated_bytes, mutated_json
from orchestrator.cluster.snapshots import MANIFEST, SnapshotStore
from orchestrator.compare import comparison_table, read_runs
from orchestrator.journal_file import JOURNAL, read_entries
from orchestrator.monitoring.readings import Readings
from trainers.errors import DataError

LINES = 14  # of a journal, at most


def parsed(data: bytes) -> Any:
    """JSON as it comes out of a journal, which has been parsed already."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DataError(f"no JSON ({type(error).__name__})") from error


@cache
def _lines() -> list[Any]:
    """The first lines, and the last of each kind."""
    lines = [json.loads(line) for line in (ROOT / "tests" / "data" / "journal_autolrs.jsonl").read_text().splitlines()]
    lines = [{key: value[:3] if isinstance(value, list) else value for key, value in line.items()} for line in lines]
    last = {line["event"]: line for line in lines}
    return [*lines[:6], *last.values()]


def journal(rng: random.Random) -> bytes:
    """A journal in which one line has changed, or the bytes have."""
    lines = [json.dumps(line) for line in _lines()]
    if rng.random() < 0.15:
        return mutated_bytes(rng, ["\n".join(lines).encode() + b"\n"])
    place = rng.randrange(len(lines))
    lines[place] = mutated_json(rng, _lines()[place])
    return ("\n".join(lines) + "\n").encode(errors="replace")


def read_run(data: bytes, folder: Path) -> None:
    """All that reads a journal, as text."""
    (folder / JOURNAL).write_bytes(data)
    readings = Readings()
    for entry in read_entries(folder / JOURNAL):
        readings.note(entry.event, entry.at)
    comparison_table(read_runs([folder]))


@cache
def result() -> dict[str, Any]:
    """The outcome of a run, as other programs read it."""
    return {
        "state": "FINISHED",
        "wall_seconds": 12.5,
        "plan": {"source": "cache"},
        "test": {"loss": 1.5},
        "train_steps": 9,
    }


def read_outcome(data: bytes, folder: Path) -> None:
    """A result beside a good journal."""
    (folder / JOURNAL).write_text("".join(f"{json.dumps(line)}\n" for line in _lines()[:3]))
    (folder / "result.json").write_bytes(data)
    comparison_table(read_runs([folder]))


def manifest(rng: random.Random) -> bytes:
    """A manifest whose checksum mostly fits."""
    files = {"rank0.safetensors": hashlib.sha256(b"whole").hexdigest()}
    document = {"format": 1, "step": 100, "content": {"policy": {"stage": 1}}, "files": files}
    body = mutated_json(rng, document)
    seal = {"manifest": body, "sha256": hashlib.sha256(body.encode(errors="replace")).hexdigest()}
    if rng.random() < 0.3:
        return mutated_json(rng, seal).encode(errors="replace")
    return json.dumps(seal).encode()


def read_snapshots(data: bytes, folder: Path) -> None:
    """The newest good snapshot of a run that has one."""
    place = folder / "snapshots" / "step-000100"
    place.mkdir(parents=True, exist_ok=True)
    (place / "rank0.safetensors").write_bytes(b"whole")
    (place / MANIFEST).write_bytes(data)
    store = SnapshotStore(folder / "snapshots")
    found, skipped = store.newest()
    assert (found is None) == bool(skipped)
