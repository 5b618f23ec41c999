"""One training from its cluster to its weights: connect, start the gang, do what the policy asks, test, save."""

from collections import deque
from dataclasses import asdict
from pathlib import Path
from time import monotonic

from orchestrator.cluster.connection import ClusterOptions, connect
from orchestrator.cluster.job import Job, JobSpec
from orchestrator.cluster.snapshots import SnapshotStore
from orchestrator.config import Config
from orchestrator.events import (
    Event,
    ForecastMade,
    JobReady,
    PlanChosen,
    ProbeRan,
    RangeChosen,
    RateChosen,
    RunResumed,
    SnapshotSaved,
    Warned,
)
from orchestrator.execution import Execution
from orchestrator.learning_rate import make_policy
from orchestrator.learning_rate.policy import Choice, Finding, Forecast, Policy, Train
from orchestrator.recording import Recording
from orchestrator.run_folder import SNAPSHOTS, WEIGHTS


def train(config: Config, folder: Path, recording: Recording, run_id: str) -> str:
    """Train from the newest good snapshot, or from the beginning; returns the digest of the final weights."""
    policy = make_policy(config.lr, config.steps, config.seed)
    resuming = len(recording.events) > 1  # a new run has only begun
    store = SnapshotStore(folder / SNAPSHOTS, config.keep)
    with connect(cluster_options(config)) as cluster, Job(job_spec(config, run_id)) as job:
        for warning in cluster.warnings:
            recording.emit(Warned(warning))
        recording.emit(JobReady(**asdict(job.start())))
        recording.emit(PlanChosen("none"))
        execution = Execution(job, recording.emit)
        if resuming:
            _take_up(execution, policy, job, store, recording)
        while (action := policy.ask()) is not None:
            for finding in policy.tell(execution.carry_out(action)):
                recording.emit(_event(finding))
            if isinstance(action, Train):
                _save(execution, policy, job, store, recording)
                if config.evaluation.at_stage_end:
                    execution.score()
        execution.validate("test")
        job.save_weights(folder / WEIGHTS)
        return job.weights_sha256()


def cluster_options(config: Config) -> ClusterOptions:
    """What the cluster must offer."""
    return ClusterOptions(**asdict(config.cluster), log_to_driver=config.debug.log_to_driver)


def job_spec(config: Config, run_id: str) -> JobSpec:
    """What every rank is to build."""
    options = {
        "batch_size": config.batch_size,
        "accumulate": config.accumulate,
        "clip": config.clip,
        "precision": config.precision,
        "seed": config.seed,
        "validation_samples": config.evaluation.validation_samples,
        "threads": config.cluster.cpus_per_worker,
        "deterministic": config.debug.deterministic,
    }
    return JobSpec(
        name=run_id,
        task=config.task,
        optimizer=config.optimizer,
        options=options,
        world_size=config.cluster.workers,
        cpus=config.cluster.cpus_per_worker,
        gpus=config.cluster.gpus_per_worker,
        backend=config.communication.backend,  # type: ignore[arg-type]
        search_paths=config.search_paths,
    )


def _take_up(execution: Execution, policy: Policy, job: Job, store: SnapshotStore, recording: Recording) -> None:
    """Go back to the newest good snapshot; probes that an earlier process ran after it are not run again."""
    snapshot, skipped = store.newest()
    for sentence in skipped:
        recording.emit(Warned(sentence))
    if snapshot is not None:
        job.load(snapshot.path, snapshot.content)
        policy.load_state(snapshot.content["policy"])
        execution.step = snapshot.step
    probes = [event for event in recording.events if isinstance(event, ProbeRan)]
    execution.remembered = deque(probe for probe in probes if probe.first_step == execution.step)
    recording.emit(RunResumed(execution.step, snapshot.path.name if snapshot else None))


def _save(execution: Execution, policy: Policy, job: Job, store: SnapshotStore, recording: Recording) -> None:
    begin = monotonic()
    saved = store.save(execution.step, lambda folder: {**job.save(folder), "policy": policy.state()})
    path = f"{SNAPSHOTS}/{saved.path.name}"
    recording.emit(SnapshotSaved(saved.step, path, monotonic() - begin))


def _event(finding: Finding) -> Event:
    match finding:
        case Forecast():
            return ForecastMade(finding)
        case Choice():
            return RateChosen(finding)
    return RangeChosen(finding)
