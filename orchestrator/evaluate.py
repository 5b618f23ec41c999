"""`evaluate=RUN_FOLDER`: a finished run's weights scored on validation and test, and by the task's own evaluation."""

import json
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from orchestrator.cluster.connection import connect
from orchestrator.cluster.job import Job
from orchestrator.config import Config, recorded_config, targets_of
from orchestrator.errors import UserError
from orchestrator.events import RunStarted
from orchestrator.experts import settle_experts
from orchestrator.journal_file import JOURNAL, read_journal
from orchestrator.long_context import check_long_context
from orchestrator.run_folder import WEIGHTS
from orchestrator.training import cluster_options, job_spec
from orchestrator.words import score_text


def evaluate(config: Config, folder: Path) -> int:
    """Score the run that `config.evaluate` names, on the cluster of `config`; writes evaluation.json into `folder`."""
    assert config.evaluate is not None
    run = Path(config.evaluate)
    started = next(iter(read_journal(run / JOURNAL)), None)
    if not isinstance(started, RunStarted) or not (run / WEIGHTS).is_file():
        raise UserError(f"evaluate={run} has no {WEIGHTS}; name the folder of a run that has finished")
    recorded = recorded_config(started.config, targets_of(config.to_json()))
    long_context = config.evaluation.long_context or recorded.evaluation.long_context
    evaluation = replace(recorded.evaluation, long_context=long_context)
    trained = replace(recorded, cluster=config.cluster, search_paths=config.search_paths, evaluation=evaluation)
    check_long_context(trained)
    settle_experts(trained.task, trained.cluster.workers, topology=None)
    with connect(cluster_options(trained)), Job(job_spec(trained, f"evaluate-{started.run_id}")) as job:
        job.start()
        job.load_weights(run / WEIGHTS)
        scores = {split: job.validate(split) for split in ("validation", "test")}
        own, samples = job.evaluate()
    if own:
        scores["task"] = own
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "evaluation.json"
    path.write_text(json.dumps({"run": str(run), "scores": scores, "samples": samples}, indent=2) + "\n")
    _show(scores, samples, path)
    return 0


def _show(scores: dict[str, dict[str, float]], samples: list[str], path: Path) -> None:
    console = Console(highlight=False)
    table = Table(box=None, pad_edge=False)
    for heading in ("split", "score", "value"):
        table.add_column(heading)
    for split, metrics in scores.items():
        for name, value in metrics.items():
            table.add_row(split, name, score_text(value))
    console.print(table)
    for sample in samples:
        console.print(sample, markup=False)
    console.print(f"written to {path}", markup=False)
