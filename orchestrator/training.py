"""One training from its cluster to its weights: connect, start the gang, do what the policy asks, test, save."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path

from orchestrator.cluster.connection import ClusterOptions, connect
from orchestrator.cluster.crew import Crew
from orchestrator.cluster.job import Job, JobSpec
from orchestrator.cluster.lab import LAB, lab_interface
from orchestrator.cluster.patience import Patience
from orchestrator.cluster.replicas import job_and_replicas, start_together
from orchestrator.cluster.snapshots import SnapshotStore
from orchestrator.cluster.standby import Standby
from orchestrator.config import Config
from orchestrator.decide.deciding import Deciding
from orchestrator.events import (
    CommunicationMeasured,
    Event,
    ForecastMade,
    JobReady,
    OverlapPlanned,
    RangeChosen,
    RateChosen,
    Warned,
)
from orchestrator.execution import Execution
from orchestrator.history import history
from orchestrator.learning_rate import make_policy
from orchestrator.learning_rate.policy import Choice, Finding, Forecast, Policy, Train
from orchestrator.long_context import long_context_options
from orchestrator.overlapping import overlap
from orchestrator.plan_choice import PlanChoice, choose_plan
from orchestrator.recording import Recording
from orchestrator.recovery import Recovery
from orchestrator.run_folder import PLAN, SNAPSHOTS, WEIGHTS
from orchestrator.saving import Saving
from orchestrator.taking_up import take_up

FEW_SAMPLES = 100  # fewer cannot tell one rate from another


def train(config: Config, folder: Path, recording: Recording, run_id: str, crew: Crew | None = None) -> str:
    """Train from the newest good snapshot, or from the beginning; returns the digest of the final weights.

    Workers that fail are replaced, and their training taken up, as long as there is progress in between. crew: the
    workers that the last training of this process has left, for this one and the next.
    """
    recovery = Recovery(config, recording)
    patience = Patience(config.cluster.hang_seconds)
    standby = Standby(patience) if config.cluster.standby and crew is None else None
    with connect(_needed(config, recovery.goes_on)) as cluster, standby or nullcontext():
        for remark in cluster.warnings:
            recording.emit(Warned(remark))
        while True:
            try:
                deciding = Deciding(recovery.staffed(), recording.events, first=not recovery.goes_on)
                with _jobs(deciding, run_id, recording, patience, crew or standby) as (job, replicas):
                    return _trained(deciding, folder, recording, recovery, job, replicas, cluster.dashboard_url)
            except Exception as error:
                if not recovery.allows(error):
                    raise


def _trained(
    deciding: Deciding,
    folder: Path,
    recording: Recording,
    recovery: Recovery,
    job: Job,
    replicas: list[Job],
    dashboard: str | None,
) -> str:
    """What one gang of workers does: go on from where the run stands to its end."""
    ready = JobReady(**asdict(start_together(job, replicas)), dashboard=dashboard)
    recording.emit(ready)

    def overlap_steps(config: Config) -> OverlapPlanned | None:
        return overlap(config, ready.world_size, job, replicas, recording)

    overlap_steps(deciding.beginning)
    config = deciding.settled(job, replicas, overlap_steps, recording.emit)
    policy = make_policy(config.lr, config.steps, config.seed)
    store = SnapshotStore(folder / SNAPSHOTS, config.keep)
    with Saving(job, store, policy, recording.emit, config.snapshot_every_steps) as saving:
        execution = Execution(
            job, recording.emit, 0, replicas, saving.within_stage, config.snapshot_every_steps, recovery.factor_at
        )
        if recovery.goes_on:
            snapshot = take_up(execution, policy, job, store, recording)
            recovery.taken_up(execution.step, snapshot.path.name if snapshot else None)
            if config.evaluation.at_stage_end and _unscored(execution, recording):
                execution.score()
        elif policy.cost().probe_steps:
            _warn_of_noise(job, recording)
        _follow(policy, execution, saving, recording, config.evaluation.at_stage_end)
    execution.validate("test")
    _measure_communication(execution.step, job, recording)
    job.save_weights(folder / WEIGHTS)
    return job.weights_sha256()


def _follow(policy: Policy, execution: Execution, saving: Saving, recording: Recording, scoring: bool) -> None:
    """Do what the policy asks for until it asks for nothing more."""
    while (action := policy.ask()) is not None:
        for finding in policy.tell(execution.carry_out(action)):
            recording.emit(_event(finding))
        if isinstance(action, Train):
            saving.at_stage_end(execution.step)
            if scoring:
                execution.score()


def _jobs(
    deciding: Deciding, run_id: str, recording: Recording, patience: Patience, standby: Standby | Crew | None
) -> AbstractContextManager[tuple[Job, list[Job]]]:
    """The gang to be, with the plan that its gradients will or can follow, and its replicas."""
    config = deciding.beginning
    choice = deciding.choice = choose_plan(config)
    for remark in () if deciding.tries("communication") else choice.remarks:
        recording.emit(Warned(remark))
    recording.emit(choice.event)
    choice.save(recording.folder / PLAN)
    return job_and_replicas(job_spec(config, run_id, choice), probe_replicas(config), patience, standby)


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


def _needed(config: Config, goes_on: bool) -> ClusterOptions:
    """What the cluster must offer for this run: an elastic one that goes on takes what there is."""
    options = cluster_options(config)
    shrinks = goes_on and config.cluster.elastic and config.cluster.address != "local"
    return replace(options, workers=1, probe_replicas=0) if shrinks else options


def cluster_options(config: Config) -> ClusterOptions:
    """What the cluster must offer."""
    cluster = config.cluster
    return ClusterOptions(
        address=cluster.address,
        workers=cluster.workers,
        probe_replicas=probe_replicas(config),
        cpus_per_worker=cluster.cpus_per_worker,
        gpus_per_worker=cluster.gpus_per_worker,
        dashboard=cluster.dashboard,
        log_to_driver=config.debug.log_to_driver,
    )


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
        elastic=config.cluster.elastic,
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


def _unscored(execution: Execution, recording: Recording) -> bool:
    """Whether the run was interrupted between a stage's snapshot and its score."""
    step = execution.step
    return step > 0 and execution.begun is None and all(each.step != step for each in history(recording.events).scores)


def _event(finding: Finding) -> Event:
    match finding:
        case Forecast():
            return ForecastMade(finding)
        case Choice():
            return RateChosen(finding)
    return RangeChosen(finding)
