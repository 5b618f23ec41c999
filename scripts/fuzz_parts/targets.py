"""Whatever reads files or words of strangers: inputs near valid ones, the reader, and how it may refuse."""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import yaml

from comm_plans import Topology
from comm_plans.all_to_all.cluster_file import read_cluster as read_cluster_file
from comm_plans.errors import PlansError
from comm_plans.plan import Plan
from comm_plans.readers.reading import read_cluster
from fuzz_parts import configuration, examples, runs
from fuzz_parts.mutations import mutated_bytes, mutated_json
from orchestrator.errors import UserError
from trainers.data.images import read_idx
from trainers.errors import DataError
from trainers.generation.tiers import kv_file
from trainers.models.gguf.header import read_header
from trainers.overlap.plan import OverlapPlan
from trainers.overlap.training.layout import Layout
from trainers.snapshot import Snapshot

Make = Callable[[random.Random], bytes]
Read = Callable[[bytes, Path], object]


@dataclass(frozen=True)
class Target:
    """make: the next input. read: takes it, with an empty folder to work in. refusals: what it may raise."""

    make: Make
    read: Read
    refusals: tuple[type[Exception], ...]


def _near(seeds: Callable[[], Sequence[bytes]]) -> Make:
    return lambda rng: mutated_bytes(rng, seeds())


def _json_near(document: Callable[[], object]) -> Make:
    """Mostly changed as JSON, now and then as bytes."""

    def make(rng: random.Random) -> bytes:
        if rng.random() < 0.1:
            return mutated_bytes(rng, [json.dumps(document()).encode()])
        return mutated_json(rng, document()).encode(errors="replace")

    return make


def _yaml_near(document: Callable[[], object]) -> Make:
    seeds = cache(
        lambda: [yaml.safe_dump(document()).encode(), yaml.safe_dump(document(), default_flow_style=True).encode()]
    )
    return _near(seeds)


def _in_file(read: Callable[[Path], object], name: str) -> Read:
    """The reader gets the path of a file that holds the input."""

    def written_and_read(data: bytes, folder: Path) -> object:
        path = folder / name
        path.write_bytes(data)
        return read(path)

    return written_and_read


def _words(name: str) -> Read:
    return lambda data, folder: read_cluster([(name, data)])


def _cluster(*names: str) -> Target:
    """A reader of a cluster's own words, by the files it is known to read."""
    return Target(_near(partial(examples.cluster_files, *names)), _words(names[0]), (PlansError,))


TARGETS = {
    "link matrix (nvidia-smi)": _cluster("a6000_bridge.txt", "dgx1_v100.txt", "five_gpus.txt", "gb200_underlined.txt"),
    "NCCL and RCCL XML": _cluster("nccl_h100_four.xml", "rccl_four_dies.xml", "cloud_skeleton.xml"),
    "ibnetdiscover": _cluster("ibnetdiscover_two_leaves.txt"),
    "measured bandwidths": _cluster("nvbandwidth_two_sockets.txt", "p2p_four_gpus.txt"),
    "rocm-smi": _cluster("two_hives_showtopo.txt"),
    "measured, .npy": Target(_near(examples.saved_matrix), _words("box.npy"), (PlansError,)),
    "topology, JSON": Target(_json_near(examples.topology), _in_file(Topology.load, "t.json"), (PlansError,)),
    "topology, YAML": Target(_yaml_near(examples.topology), _in_file(Topology.load, "t.yaml"), (PlansError,)),
    "cluster file": Target(_yaml_near(examples.servers), _in_file(read_cluster_file, "c.yaml"), (PlansError,)),
    "plan file": Target(_json_near(examples.plan), _in_file(Plan.load, "plan.json"), (PlansError,)),
    "plan cache": Target(examples.cache_entry, examples.read_cache, ()),
    "overlap plan": Target(
        _json_near(examples.overlap_plan),
        lambda data, _: OverlapPlan.from_json(data.decode(errors="replace")),
        (DataError,),
    ),
    "overlap layout": Target(
        _json_near(examples.overlap_layout), lambda data, _: Layout.from_json(runs.parsed(data)), (DataError,)
    ),
    "GGUF header": Target(_near(examples.gguf), _in_file(read_header, "model.gguf"), (DataError,)),
    "IDX": Target(_near(examples.idx), _in_file(read_idx, "images"), (DataError,)),
    "IDX, gzipped": Target(examples.zipped_idx, _in_file(read_idx, "images.gz"), (DataError,)),
    "kept conversation": Target(_near(examples.conversation), _in_file(kv_file.read, "c.kv"), (kv_file.DamagedError,)),
    "snapshot's tensors": Target(_near(examples.tensors), _in_file(Snapshot.read, "rank.safetensors"), (DataError,)),
    "snapshot manifest": Target(runs.manifest, runs.read_snapshots, ()),
    "journal": Target(runs.journal, runs.read_run, (UserError,)),
    "result.json": Target(_json_near(runs.result), runs.read_outcome, (UserError,)),
    "overrides": Target(configuration.overrides, configuration.parse_overrides, (UserError,)),
    "configuration": Target(configuration.values, configuration.check_values, (UserError,)),
}
