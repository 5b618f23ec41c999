"""The one place that says how a run ended: its state, the reason, result.json, and the command's exit status."""

from pathlib import Path

from orchestrator.cluster.crew import Crew
from orchestrator.communication import measured_bandwidth
from orchestrator.config import Config
from orchestrator.decide.words import decided_result
from orchestrator.events import Json, PlanChosen, RunEnded
from orchestrator.history import History, history
from orchestrator.overlap_words import overlap_result
from orchestrator.recording import Recording
from orchestrator.run_folder import write_result
from orchestrator.run_state import Outcome, classified
from orchestrator.stopping import ignoring_signals, stopping_on_signals
from orchestrator.summary import summarise
from orchestrator.training import probe_replicas, train
from orchestrator.words import policy_name, task_name


def carried_through(config: Config, folder: Path, recording: Recording, run_id: str, crew: Crew | None = None) -> int:
    """Train to the end, whatever that is, and record it; returns the exit status."""
    weights: str | None = None
    error: BaseException | None = None
    try:
        with stopping_on_signals():
            weights = train(config, folder, recording, run_id, crew)
    except BaseException as caught:
        error = caught
    outcome = classified(error)
    _end(config, folder, recording, outcome, weights)
    if error is not None and outcome.ours:
        raise error
    return outcome.status


def _end(config: Config, folder: Path, recording: Recording, outcome: Outcome, weights: str | None) -> None:
    with ignoring_signals():
        result = _result(config, recording, outcome, weights)
        write_result(folder, result)
        recording.emit(RunEnded(outcome.state, outcome.reason, result))


def _result(config: Config, recording: Recording, outcome: Outcome, weights: str | None) -> Json:
    values = config.to_json()
    wall_seconds = recording.seconds
    summary = summarise(recording.events, wall_seconds)
    story = history(recording.events)
    return {
        "state": outcome.state,
        "reason": outcome.reason,
        "task": task_name(values),
        "seed": config.seed,
        "lr_policy": policy_name(values),
        "train_steps": summary["train_steps"],
        "probe_steps": summary["probe_steps"],
        "wall_seconds": wall_seconds,
        "worker_seconds": wall_seconds * config.cluster.workers * (1 + probe_replicas(config)),
        "seconds": summary["seconds"],
        "train_loss": summary["train_loss"],
        "validation_loss": summary["validation_loss"],
        "validation": summary["validation"],
        "test": summary["test"],
        "scores": summary["scores"],
        "lr_by_step": summary["lr_by_step"],
        "settings": dict(story.settings),
        "plan": _plan(story),
        "overlap": overlap_result(story.overlap),
        "decided": [decided_result(event) for event in story.decided],
        "recoveries": len(story.recoveries),
        "mlflow_run_id": recording.mlflow_run_id(),
        "weights_sha256": weights,
    }


def _plan(story: History) -> Json:
    plan = story.plan or PlanChosen("none")
    measured = story.communication and measured_bandwidth(story.communication, str(plan.collective))
    return {
        "key": plan.key,
        "collective": plan.collective,
        "algbw": plan.algbw,
        "source": plan.source,
        "network": plan.network,
        "measured_algbw": measured,
    }
