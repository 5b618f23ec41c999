"""One training from its cluster to its weights: connect, start the gang, do what the policy asks, test, save."""

from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from time import monotonic

from orchestrator.cluster.connection import Cluster, ClusterOptions, connect
from orchestrator.cluster.job import Job, JobSpec
from orchestrator.cluster.lab import LAB, lab_interface
from orchestrator.cluster.replicas import job_and_replicas, start_together
from orchestrator.cluster.snapshots import SnapshotStore
from orchestrator.config import Config
from orchestrator.events import (
    CommunicationMeasured,
    Event,
    ForecastMade,
    JobReady,
    ProbeRan,
    RangeChosen,
    RateChosen,
    RunResumed,
    SnapshotSaved,
    Warned,
)
from orchestrator.execution import Execution
from orchestrator.history import history
from orchestrator.learning_rate import make_policy
from orchestrator.learning_rate.policy import Choice, Finding, Forecast, Policy, Train
from orchestrator.long_context import long_context_options
from orchestrator.plan_choice import PlanChoice, choose_plan
from orchestrator.recording import Recording
from orchestrator.run_folder import SNAPSHOTS, WEIGHTS

FEW_SAMPLES = 100  # fewer cannot tell one rate from another


def train(config: Config, folder: Path, recording: Recording, run_id: str) -> str:
    """Train from the newest good snapshot, or from the beginning; returns the digest of the final weights."""
    policy = make_policy(config.lr, config.steps, config.seed)
    resuming = len(recording.events) > 1  # a new run has only begun
    store = SnapshotStore(folder / SNAPSHOTS, config.keep)
    with connect(cluster_options(config)) as cluster, _jobs(config, run_id, cluster, recording) as (job, replicas):
        recording.emit(JobReady(**asdict(start_together(job, replicas)), dashboard=cluster.dashboard_url))
        if policy.cost().probe_steps:
            _warn_of_noise(job, recording)
        execution = Execution(job, recording.emit, replicas=replicas)
        if resuming:
            _take_up(execution, policy, job, store, recording)
            if config.evaluation.at_stage_end and _unscored(execution.step, recording):
                execution.score()
        while (action := policy.ask()) is not None:
            for finding in policy.tell(execution.carry_out(action)):
                recording.emit(_event(finding))
            if isinstance(action, Train):
                _save(execution, policy, job, store, recording)
                if config.evaluation.at_stage_end:
                    execution.score()
        execution.validate("test")
        _measure_communication(execution.step, job, recording)
        job.save_weights(folder / WEIGHTS)
        return job.weights_sha256()


def _jobs(
    config: Config, run_id: str, cluster: Cluster, recording: Recording
) -> AbstractContextManager[tuple[Job, list[Job]]]:
    """The gang to be, with the plan that its gradients will follow, and its replicas."""
    choice = choose_plan(config)
    for remark in (*cluster.warnings, *choice.remarks):
        recording.emit(Warned(remark))
    recording.emit(choice.event)
    return job_and_replicas(job_spec(config, run_id, choice), probe_replicas(config))


def _warn_of_noise(job: Job, recording: Recording) -> None:
    samples = job.validation_samples()
    if samples < FEW_SAMPLES:
        recording.emit(
            Warned(f"rates are compared on {samples} validation samples only, so that noise has a say in it")
        )


def _measure_communication(step: int, job: Job, recording: Recording) -> None:
    measured = job.communication()
    if measured is not None:
        recording.emit(CommunicationMeasured(step, **measured))


def cluster_options(config: Config) -> ClusterOptions:
    """What the cluster must offer."""
    wanted = {**asdict(config.cluster), "probe_replicas": probe_replicas(config)}
    return ClusterOptions(**wanted, log_to_driver=config.debug.log_to_driver)


def probe_replicas(config: Config) -> int:
    """How many spare copies of the job are of use: none where nothing is probed."""
    probes = make_policy(config.lr, config.steps, config.seed).cost().probe_steps
    return config.cluster.probe_replicas if probes else 0


def job_spec(config: Config, run_id: str, choice: PlanChoice | None = None) -> JobSpec:
    """What every rank is to build, and the plan that it will follow."""
    choice = choice or PlanChoice()
    options = {
        "batch_size": config.batch_size,
        "accumulate": config.accumulate,
        "clip": config.clip,
        "precision": config.precision,
        "seed": config.seed,
        "validation_samples": config.evaluation.validation_samples,
        "threads": config.cluster.cpus_per_worker,
        "deterministic": config.debug.deterministic,
        "long_context": long_context_options(config),
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
        pins=choice.pins,
        plans=choice.plans,
        interface=_interface(config),
        planned_options={
            "transport": config.communication.transport,
            "threshold_bytes": config.communication.threshold_bytes,
            "strict": config.communication.strict,
        },
    )


def _interface(config: Config) -> str | None:
    """Of the data: what was asked for; in the lab, the shaped one."""
    in_lab = config.cluster.address == LAB
    return config.communication.interface or (lab_interface() if in_lab else None)


def _take_up(execution: Execution, policy: Policy, job: Job, store: SnapshotStore, recording: Recording) -> None:
    """Go back to the newest good snapshot; probes that an earlier process ran after it are not run again."""
    snapshot, skipped = store.newest()
    for sentence in skipped:
        recording.emit(Warned(sentence))
    if snapshot is not None:
        job.load(snapshot.path, snapshot.content)
        policy.load_state(snapshot.content["policy"])
        execution.step = snapshot.step
    execution.remember(event for event in recording.events if isinstance(event, ProbeRan))
    recording.emit(RunResumed(execution.step, snapshot.path.name if snapshot else None))


def _unscored(step: int, recording: Recording) -> bool:
    """Whether an earlier process ended between a stage's snapshot and its score."""
    return step > 0 and all(score.step != step for score in history(recording.events).scores)


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
