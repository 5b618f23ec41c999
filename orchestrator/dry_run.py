"""`dry_run=true`: what would run, where, for how long and at what cost, without starting anything."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from orchestrator.config import Config
from orchestrator.decide.beforehand import measured
from orchestrator.errors import UserError
from orchestrator.events import Json
from orchestrator.journal_file import JOURNAL, read_journal
from orchestrator.learning_rate import make_policy
from orchestrator.learning_rate.policy import Cost
from orchestrator.learning_rate.turns import steps_in_turn
from orchestrator.long_context import long_context_cost
from orchestrator.network import AUTO, named
from orchestrator.past import taught
from orchestrator.run_folder import RESULT, read_result
from orchestrator.task_data import check_task_data
from orchestrator.training import probe_replicas
from orchestrator.words import count_text, duration_text, policy_name, rate_text, task_name

_SAME_SPEED = (
    "task", "model", "optimizer", "batch_size", "accumulate", "precision", "cluster", "communication", "overlap",
    "decide",
)  # fmt: skip


def print_dry_run(config: Config, folder: Path) -> None:
    """Print the launch as it would be. Raises UserError if its data are not there."""
    check_task_data(config)
    config, past = taught(config)
    values = config.to_json()
    cost = make_policy(config.lr, config.steps, config.seed).cost()
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, text in _rows(config, values, cost, folder, past):
        table.add_row(f"[bold]{name}[/]", escape(text))
    Console().print(table)


def _rows(config: Config, values: Json, cost: Cost, folder: Path, past: str | None) -> Iterator[tuple[str, str]]:
    cluster = config.cluster
    total = cost.train_steps + cost.probe_steps
    samples = config.batch_size * config.accumulate * cluster.workers
    yield "task", f"{task_name(values)}, data {config.task.get('data', 'of its own')}"
    yield "where", f"Ray at {cluster.address}: {count_text(cluster.workers, 'worker')}, " + _each_worker(config)
    yield "step", f"{count_text(samples, 'sample')} ({config.batch_size} a worker, {config.precision})"
    yield "gradients", _gradients(config)
    yield "overlap", _overlap(config)
    if to_decide := measured(config):
        yield "deciding", to_decide
    yield "learning rate", f"{policy_name(values)}, {count_text(cost.stages, 'stage')}"
    if past is not None:
        yield "past", f"searched around {rate_text(config.lr['near'])}, as {past} chose"
    yield "training", count_text(cost.train_steps, "step")
    yield "search", f"at most {count_text(cost.probe_steps, 'step')}, {cost.probe_steps / total:.0%} of all steps"
    if cost.also_steps:
        share = f"at most {cost.also_steps:,} of these, {cost.also_steps / config.steps:.0%} of steps"
        yield "also searched", f"{', '.join(config.lr['also'])}: {share}"
    if replicas := probe_replicas(config):
        yield "side by side", _side_by_side(config, replicas)
    if config.evaluation.long_context is not None:
        yield "long context", long_context_cost(config, cost.stages)
    yield "how long", _how_long(total, values, Path(config.outputs))
    yield "recorded in", f"{folder}; MLflow: {config.tracking.uri or 'off'}"


def _side_by_side(config: Config, replicas: int) -> str:
    in_turn = steps_in_turn(make_policy(config.lr, config.steps, config.seed), 1 + replicas)
    steps = f"{count_text(in_turn, 'step')} one after another, {in_turn / config.steps:.3g} × steps"
    return f"probes on {count_text(replicas, 'replica')} too: at most {steps}"


def _each_worker(config: Config) -> str:
    gpus = f" and {count_text(config.cluster.gpus_per_worker, 'GPU')}" if config.cluster.gpus_per_worker else ""
    return f"{count_text(config.cluster.cpus_per_worker, 'CPU')}{gpus} each"


def _gradients(config: Config) -> str:
    if config.communication.method == "backend":
        return f"by the backend's own all_reduce ({config.communication.backend})"
    try:
        if config.topology != AUTO:
            named(config.topology, config.cluster.workers)
    except UserError as error:
        if config.communication.strict:
            raise
        return f"by the backend's own all_reduce: {error}"
    return f"by a plan for topology={config.topology}, over {config.communication.transport}"


def _overlap(config: Config) -> str:
    if config.overlap.mode == "off":
        return "gradients are averaged during the backward pass"
    if config.cluster.workers == 1:
        return "searched, but one worker has nothing to hide"
    return "a pipeline of buckets, searched by some 60 trial steps before training"


def _how_long(steps: int, values: Json, outputs: Path) -> str:
    past = max(_same_runs(values, outputs), key=lambda run: run.finished_at, default=None)
    if past is None:
        return "not known before a run with this task, model, batch and cluster has finished here"
    seconds = past.seconds_a_step * steps
    return f"about {duration_text(seconds)}, by the speed of {past.folder}"


@dataclass(frozen=True)
class _PastRun:
    folder: Path
    seconds_a_step: float
    finished_at: float


def _same_runs(values: Json, outputs: Path) -> Iterator[_PastRun]:
    """Finished runs that took steps of the same kind in the same place."""
    for path in outputs.rglob(RESULT):
        with suppress(UserError, LookupError, ValueError):  # MLflow's copies and damaged runs tell no speed
            result = read_result(path.parent)
            started = read_journal(path.parent / JOURNAL)[0]
            recorded = getattr(started, "config", {})
            if result["state"] == "FINISHED" and all(recorded.get(key) == values[key] for key in _SAME_SPEED):
                steps = result["train_steps"] + result["probe_steps"]
                yield _PastRun(path.parent, result["wall_seconds"] / steps, path.stat().st_mtime)
