"""Valid files of every kind that is read, small ones, so that whatever changes in them matters."""

import gzip
import hashlib
import json
import random
import struct
import tempfile
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch

from comm_plans import PlanCache, Topology, solve
from comm_plans.cache import HEADER
from fuzz_parts.mutations import mutated_bytes, mutated_json
from trainers.generation.tiers import kv_file
from trainers.generation.tiers.kept import Kept
from trainers.overlap.operations import Resource
from trainers.overlap.plan import OverlapPlan
from trainers.overlap.training.layout import BucketLayout, Layout
from trainers.snapshot import Snapshot

ROOT = Path(__file__).parent.parent.parent
CLUSTERS = ROOT / "tests" / "data" / "topology_inputs"


@cache
def cluster_files(*names: str) -> list[bytes]:
    """What clusters say about themselves."""
    return [(CLUSTERS / name).read_bytes() for name in names]


@cache
def saved_matrix() -> list[bytes]:
    """Bandwidths between four GPUs, as numpy saves them."""
    file = BytesIO()
    np.save(file, np.full((4, 4), 23.5) - 23.5 * np.eye(4))
    return [file.getvalue()]


@cache
def topology() -> dict[str, Any]:
    """Two boxes of two ranks, with all that a topology file may hold."""
    return {
        "name": "two-boxes",
        "ranks": ["g0", "g1", "g2", "g3"],
        "switches": ["s0", {"name": "s1", "multicast": True, "reduces": False}],
        "hosts": {"b0": ["g0", "g1"], "b1": ["g2", "g3"]},
        "links": [["g0", "g1", 300], {"from": "g1", "to": "g0", "bandwidth": "13/3", "latency": 1e-6}],
        "cables": [
            ["g2", "g3", 24.5],
            ["g0", "s0", 25],
            ["g1", "s0", 25],
            ["g2", "s1", 25],
            ["g3", "s1", 25],
            ["s0", "s1", 50],
        ],
    }


@cache
def servers() -> dict[str, Any]:
    """A cluster of servers."""
    return {
        "servers": 4,
        "gpus_per_server": [8, 8, 4, 8],
        "intra_bandwidth": 450,
        "nic_bandwidth": 50,
        "nic_latency": 2.6e-6,
    }


@cache
def plan() -> dict[str, Any]:
    """A plan in its JSON form."""
    return solve(Topology.from_document(topology()), "all_reduce").to_document()


@cache
def cached() -> tuple[str, bytes]:
    """A file of the plan cache, and its name."""
    with tempfile.TemporaryDirectory() as folder:
        path = PlanCache(folder).put(solve(Topology.from_document(topology()), "all_reduce"))
        return path.name, path.read_bytes()


def cache_entry(rng: random.Random) -> bytes:
    """A file whose checksum mostly fits, so that what is behind it gets read."""
    _, whole = cached()
    if rng.random() < 0.3:
        return mutated_bytes(rng, [whole])
    _, summary, document = whole.split(b"\n", 2)
    lines = [mutated_json(rng, json.loads(summary)).encode(errors="replace"), document.rstrip()]
    if rng.random() < 0.7:
        lines = [summary, mutated_json(rng, json.loads(document)).encode(errors="replace")]
    body = b"\n".join(lines) + b"\n"
    return f"{HEADER} {hashlib.sha256(body).hexdigest()}\n".encode() + body


def read_cache(data: bytes, folder: Path) -> None:
    """All that is done with such a file."""
    cache = PlanCache(folder / "plans")
    cache.folder.mkdir(exist_ok=True)
    (cache.folder / cached()[0]).write_bytes(data)
    cache.get(Topology.from_document(topology()), "all_reduce")
    cache.entries()
    cache.prune()


@cache
def overlap_plan() -> dict[str, Any]:
    """A plan of overlapping, of two operations."""
    streams = {Resource.COMPUTE: ("forward",), Resource.NETWORK: ("sum",)}
    starts, ends = {"forward": 0.0, "sum": 0.5}, {"forward": 0.5, "sum": 1.5}
    shares = {"forward": 1.0, "sum": 0.5}
    document: dict[str, Any] = json.loads(
        OverlapPlan("overlapped", "ab12", "cpu", streams, shares, starts, ends, 1.0, 1.5).to_json()
    )
    return document


@cache
def overlap_layout() -> dict[str, Any]:
    """How a step is overlapped."""
    return Layout("overlapped", (BucketLayout(("a", "b"), "c"), BucketLayout(("d",), None)), (1, 0), 2).to_json()


@cache
def gguf() -> list[bytes]:
    """The header of a small model: numbers, text, lists, two tensors."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    words = [text(word) for word in ("a", "b", "the")]
    metadata = [
        text("general.alignment") + struct.pack("<II", 4, 32),
        text("general.name") + struct.pack("<I", 8) + text("tiny"),
        text("tokens") + struct.pack("<IIQ", 9, 8, 3) + b"".join(words),
        text("scores") + struct.pack("<IIQ3f", 9, 6, 3, 0.5, 1.5, 2.5),
        text("base") + struct.pack("<If", 6, 10000.0),
    ]
    tensors = [text(f"t{each}") + struct.pack("<IQQIQ", 2, 4, 3, 0, 64 * each) for each in range(2)]
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    return [header + b"".join(metadata + tensors) + bytes(192)]


@cache
def idx() -> list[bytes]:
    """Five images of two by three."""
    return [struct.pack(">HBBIII", 0, 8, 3, 5, 2, 3) + bytes(range(30))]


def zipped_idx(rng: random.Random) -> bytes:
    """Damaged within, or as a zipped file."""
    if rng.random() < 0.5:
        return gzip.compress(mutated_bytes(rng, idx()), 1)
    return mutated_bytes(rng, [gzip.compress(idx()[0], 1)])


@cache
def conversation() -> list[bytes]:
    """Keys and values of three tokens."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.kv"
        kv_file.write(path, Kept((1, 2, 3), torch.zeros(1, 2, 3, 2), torch.ones(1, 2, 3, 2), "model"))
        return [path.read_bytes()]


@cache
def tensors() -> list[bytes]:
    """A training state."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rank.safetensors"
        Snapshot({"parameters.w": torch.ones(2, 3)}, {"step": 3, "optimizer": {}, "shards": []}).write(path)
        return [path.read_bytes()]
