"""The configuration of a launch: composed by Hydra once, checked as a whole, then plain dataclasses.

Nothing after this file sees a DictConfig. What is read back from a run folder is data: the classes it names are used
only if the installed configuration tree, or the person's own command line, names them as well.
"""

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf, SCMode
from omegaconf.errors import OmegaConfBaseException

from orchestrator.cluster.lab import LAB, lab_topology
from orchestrator.earlier_run import chosen_rate
from orchestrator.errors import UserError
from orchestrator.experts import settle_experts
from orchestrator.known_classes import KEYS_OF, check_model_fits
from orchestrator.learning_rate import make_policy
from orchestrator.network import AUTO

Json = dict[str, Any]

_DEEPEST = 50
_BESIDE_PACKAGE = Path(__file__).parent.parent / "conf"  # a checkout
CONF = _BESIDE_PACKAGE if _BESIDE_PACKAGE.is_dir() else Path(__file__).parent / "conf"  # an installed wheel


@dataclass
class ClusterConfig:
    """Where the workers run. `address`: local, auto, lab, host:port or ray://host:port.

    probe_replicas: spare copies of the whole job that make probes side by side with it. max_failures: of workers, one
    after another without progress in between, before the run ends. hang_seconds: how much longer than usual steps may
    take before workers count as hung; None: five times as long as usual, and a minute at least. elastic: whether fewer
    workers go on where a node is lost; node_seconds: how long a lost node is waited for otherwise.
    standby: whether a second set of workers is kept ready to take over; for a Ray of our own without GPUs.
    """

    address: str
    workers: int
    cpus_per_worker: int
    gpus_per_worker: int
    dashboard: bool
    probe_replicas: int = 0
    max_failures: int = 3
    hang_seconds: float | None = None
    elastic: bool = False
    node_seconds: float = 60.0
    standby: bool = False


@dataclass
class CommunicationConfig:
    """How gradients travel. `method`: backend or planned; `backend`: auto, gloo or nccl; the rest is for planned."""

    method: str
    backend: str
    transport: str
    interface: str | None
    threshold_bytes: int | None
    strict: bool


@dataclass
class OverlapConfig:
    """Whether steps overlap communication and optimizer with computation. `mode`: off or searched."""

    mode: str = "off"


@dataclass
class DecideConfig:
    """Which decisions are `measured` before the first step, and which stay as `given`, by default or by the person.

    seconds: most seconds that this may take; None: a small share of the run, and half of what has been saved already.
    """

    communication: str = "given"
    overlap: str = "given"
    batch: str = "given"
    rate: str = "given"
    seconds: float | None = None


@dataclass
class LongContextConfig:
    """Keys of evaluation.long_context: those of `trainers.generation.evaluation.options.LongContextOptions`."""

    method: str
    target_mass: float
    context: int
    prompts: int
    needles: int
    new_tokens: int
    batch: int


@dataclass
class EvaluationConfig:
    """On how much held-out data choices are made, and whether the task's own scores are taken at stage ends.

    long_context: what a language model is scored by besides; None: nothing.
    """

    validation_samples: int
    at_stage_end: bool
    long_context: LongContextConfig | None = None


@dataclass
class TrackingConfig:
    """Where MLflow keeps the run; `uri` null: nowhere. `model_megabytes`: largest weights that go along; 0: none."""

    uri: str | None
    experiment: str
    model_megabytes: float = 100.0


@dataclass
class DebugConfig:
    """Aids for finding faults, at the cost of speed."""

    deterministic: bool
    log_to_driver: bool


@dataclass
class Config:
    """One launch, whole. `task`, `model`, `optimizer` are trees with `_target_`; `lr` is what `make_policy` takes."""

    steps: int
    batch_size: int
    seed: int
    precision: str
    accumulate: int
    clip: float | None
    keep: int
    outputs: str
    dry_run: bool
    evaluate: str | None
    topology: str
    size: dict[str, Any]
    task: dict[str, Any]
    model: dict[str, Any]
    optimizer: dict[str, Any]
    lr: dict[str, Any]
    cluster: ClusterConfig
    communication: CommunicationConfig
    evaluation: EvaluationConfig
    tracking: TrackingConfig
    debug: DebugConfig
    snapshot_every_steps: int | None = None  # within stages; None: at their ends only
    past: bool | None = None  # learn from earlier runs of the same work; None: a single one that decides its rate
    terminal: str = "auto"  # full, quiet, or auto: quiet where the run is one of several
    parent: str | None = None  # the folder of several runs that this one belongs to
    overlap: OverlapConfig = field(default_factory=OverlapConfig)
    decide: DecideConfig = field(default_factory=DecideConfig)
    search_paths: list[str] = field(default_factory=list)  # where the person's own modules lie

    def to_json(self) -> Json:
        """The configuration as plain JSON values."""
        return dataclasses.asdict(self)


def config_from(values: Mapping[str, Any]) -> Config:
    """Typed and checked configuration. A UserError names the key that is wrong and what is allowed."""
    _check_depth(values)
    try:
        typed = OmegaConf.merge(OmegaConf.structured(Config), OmegaConf.create(dict(values)))
        config = OmegaConf.to_container(
            typed, resolve=True, throw_on_missing=True, structured_config_mode=SCMode.INSTANTIATE
        )
    except OmegaConfBaseException as error:
        raise UserError(sentence_of(error)) from error
    assert isinstance(config, Config)
    _make_data_absolute(config.task)
    config.topology = _located(config.topology)
    for name in ("task", "model", "optimizer"):
        _check_types(getattr(config, name), name)
    check_model_fits(config.task)
    settle_experts(config.task, config.cluster.workers, _topology_stood_on(config))
    _check_ranges(config)
    _warm_start(config.lr)
    make_policy(config.lr, config.steps, config.seed)  # has sentences of its own for the lr group
    _check_also(config)
    return config


def recorded_config(values: Json, granted: Iterable[str] = ()) -> Config:
    """A configuration read back from a run folder.

    Its `_target_`s must be known to the installed configuration tree or be granted by the person who asks now, so
    that a folder from a stranger cannot choose which code runs.
    """
    _check_depth(values)
    allowed = known_targets().union(granted)
    for key, target in _targets_in(values):
        if target not in allowed:
            raise UserError(
                f"the run folder names code of its own, {key}={target}, which is not run unasked; "
                f"if you trust it, add {key}={target} to the command"
            )
    return config_from(values)


def granted_targets(grants: Iterable[str]) -> Iterator[str]:
    """The classes that a person names on the command line, as KEY._target_=CLASS each."""
    for grant in grants:
        key, equals, target = grant.partition("=")
        if not equals or not key.endswith("_target_"):
            raise UserError(
                f"'{grant}' is no KEY._target_=CLASS; a run goes on with the configuration it was started with"
            )
        yield target


def own_code(values: Json) -> list[str]:
    """What a command on a run folder must name to be let run it: KEY._target_=CLASS of each class of a person's own."""
    known = known_targets()
    own = {target: key for key, target in _targets_in(values) if target not in known}
    return [f"{key}={target}" for target, key in own.items()]


@cache
def known_targets() -> frozenset[str]:
    """Every `_target_` in the configuration tree that came with this installation."""
    files = CONF.rglob("*.yaml")
    return frozenset(target for path in files for target in targets_of(yaml.safe_load(path.read_text())))


def targets_of(values: Any) -> Iterator[str]:
    """Every `_target_` in a tree of plain values."""
    return (target for _, target in _targets_in(values))


def build(spec: Json) -> Any:
    """The object that a `_target_` tree describes; `_partial_` gives a factory. For trusted configuration only.

    UserError where a class cannot be found or does not take what it is given.
    """
    from hydra.errors import InstantiationException
    from hydra.utils import instantiate

    try:
        return instantiate(spec, _convert_="all")
    except InstantiationException as error:
        cause = error.__cause__
        if cause is not None and not isinstance(cause, ImportError | TypeError | AttributeError):
            raise cause from None  # the class's own complaint says it best
        raise UserError(" ".join(str(error).split())) from error


def sentence_of(error: Exception) -> str:
    """One sentence out of OmegaConf's several lines: the key first, then what is wrong with it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    key = getattr(error, "full_key", None)
    return f"{key}: {lines[0]}" if key and not lines[0].startswith(str(key)) else lines[0]


def _targets_in(values: Any, key: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(values, Mapping):
        for name, value in values.items():
            inner = f"{key}.{name}" if key else str(name)
            if name == "_target_":
                yield inner, str(value)
            else:
                yield from _targets_in(value, inner)
    elif isinstance(values, list):
        for index, value in enumerate(values):
            yield from _targets_in(value, f"{key}.{index}")


def _check_depth(values: Any, depth: int = 0) -> None:
    """What is nested deeper than any configuration would exhaust the stack of those who walk through it."""
    if depth > _DEEPEST:
        raise UserError(f"the configuration nests more than {_DEEPEST} mappings or lists in each other: take it apart")
    for inner in values.values() if isinstance(values, Mapping) else values if isinstance(values, list) else ():
        _check_depth(inner, depth + 1)


def _warm_start(lr: Json) -> None:
    """The rate that an earlier run chose takes the place of its folder, which need not be there at a resume."""
    folder = lr.pop("warm_start", None)
    if folder is not None:
        _require(isinstance(folder, str), "lr.warm_start", folder, "a run folder, or null for a whole search")
        lr["near"] = chosen_rate(Path(folder))


def _make_data_absolute(task: Json) -> None:
    """A run may be taken up from elsewhere, and its workers may stand elsewhere."""
    model = task.get("model")
    for tree, key in ((task, "data"), (model if isinstance(model, dict) else {}, "path")):
        named = tree.get(key)
        if isinstance(named, str) and os.path.exists(named):  # noqa: PTH110 - takes what is no path for absent
            tree[key] = str(Path(named).absolute())


def _located(topology: str) -> str:
    """A file's absolute path, also of one that came with the installation; every other word as it is."""
    for path in (Path(topology), CONF / "topologies" / topology):
        if path.suffix and os.path.isfile(path):  # noqa: PTH113 - takes what is no path for absent
            return str(path.absolute())
    return topology


def _topology_stood_on(config: Config) -> str | None:
    """The network that workers are tied to, if it can be read before anything starts."""
    if config.communication.method != "planned":
        return None
    if config.topology != AUTO:
        return config.topology
    return lab_topology() if config.cluster.address == LAB else None


def _check_types(tree: Json, key: str) -> None:
    """The classes that come with the project have typed keys; a person's own are checked by their constructor."""
    target = tree.get("_target_")
    if not isinstance(target, str):
        raise UserError(f"{key}._target_ is missing: name the class, as in {key}._target_=my_module.MyClass")
    if target in KEYS_OF:
        try:
            OmegaConf.merge(OmegaConf.structured(KEYS_OF[target]), OmegaConf.create(tree))
        except OmegaConfBaseException as error:
            raise UserError(f"{key}.{sentence_of(error)}") from error
    for name, value in tree.items():
        if isinstance(value, dict) and "_target_" in value:
            _check_types(value, f"{key}.{name}")


def _check_ranges(config: Config) -> None:
    cluster = config.cluster
    at_least_one = {
        "steps": config.steps,
        "batch_size": config.batch_size,
        "accumulate": config.accumulate,
        "keep": config.keep,
        "cluster.workers": cluster.workers,
        "cluster.cpus_per_worker": cluster.cpus_per_worker,
        "evaluation.validation_samples": config.evaluation.validation_samples,
    }
    for key, value in at_least_one.items():
        _require(value >= 1, key, value, "at least 1")
    _require(cluster.probe_replicas >= 0, "cluster.probe_replicas", cluster.probe_replicas, "0 or more")
    _require(cluster.max_failures >= 0, "cluster.max_failures", cluster.max_failures, "0 or more")
    seconds = cluster.hang_seconds
    _require(seconds is None or seconds > 0, "cluster.hang_seconds", seconds, "above 0, or null")
    fits = cluster.address == "local" and not cluster.gpus_per_worker
    _require(
        fits or not cluster.standby, "cluster.standby", cluster.standby, "false but for cluster=local without GPUs"
    )
    _require(cluster.node_seconds >= 0, "cluster.node_seconds", cluster.node_seconds, "0 or more")
    every = config.snapshot_every_steps
    _require(every is None or every >= 1, "snapshot_every_steps", every, "at least 1, or null for stage ends only")
    _require(config.seed >= 0, "seed", config.seed, "0 or more")
    _require(config.clip is None or config.clip > 0, "clip", config.clip, "above 0, or null for no clipping")
    _require(cluster.gpus_per_worker in (0, 1), "cluster.gpus_per_worker", cluster.gpus_per_worker, "0 or 1")
    _require_one_of("precision", config.precision, "float32", "bfloat16", "float16")
    _require_one_of("overlap.mode", config.overlap.mode, "off", "searched")
    _require_one_of("terminal", config.terminal, "auto", "full", "quiet")
    megabytes = config.tracking.model_megabytes
    _require(megabytes >= 0, "tracking.model_megabytes", megabytes, "0 or more")
    on_gpus = config.overlap.mode == "searched" and cluster.gpus_per_worker
    _require(not on_gpus, "cluster.gpus_per_worker", cluster.gpus_per_worker, "0, for overlap=searched works on CPUs")
    decide = config.decide
    for what in ("communication", "overlap", "batch", "rate"):
        _require_one_of(f"decide.{what}", getattr(decide, what), "given", "measured")
    limited = decide.seconds is None or decide.seconds > 0
    _require(limited, "decide.seconds", decide.seconds, "above 0, or null for a small share of the run")
    communication = config.communication
    _require_one_of("communication.method", communication.method, "backend", "planned")
    _require_one_of("communication.backend", communication.backend, "auto", "gloo", "nccl")
    _require_one_of("communication.transport", communication.transport, "streams", "p2p")
    threshold = communication.threshold_bytes
    _require(threshold is None or threshold >= 0, "communication.threshold_bytes", threshold, "0 or more, or null")


def _check_also(config: Config) -> None:
    """What `lr.also` would change by factors must be there to be changed."""
    also = config.lr.get("also") or ()
    decays = config.optimizer.get("weight_decay") != 0
    samples = config.batch_size * config.accumulate
    needed = "above 0, for lr.also has weight_decay, which multiplies it"
    _require("weight_decay" not in also or decays, "optimizer.weight_decay", 0, needed)
    needed = "even, for lr.also has batch_size, which halves it"
    _require("batch_size" not in also or samples % 2 == 0, "batch_size", config.batch_size, needed)


def _require_one_of(key: str, value: str, *allowed: str) -> None:
    _require(value in allowed, key, value, " or ".join(allowed))


def _require(holds: bool, key: str, value: object, allowed: str) -> None:
    if not holds:
        raise UserError(f"{key} is {value}, and must be {allowed}")
