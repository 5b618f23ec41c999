"""Spare replicas of a job: whole copies of it, with workers of their own, that make probes side by side with it."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from orchestrator.cluster.crew import Crew
from orchestrator.cluster.job import Job, JobInfo
from orchestrator.cluster.job_spec import JobSpec
from orchestrator.cluster.patience import Patience
from orchestrator.cluster.standby import Standby
from orchestrator.copies import Copies
from orchestrator.errors import UserError
from orchestrator.side_by_side import side_by_side


@contextmanager
def job_and_replicas(
    spec: JobSpec, replicas: int, patience: Patience | None = None, standby: Standby | Crew | None = None
) -> Iterator[tuple[Job, list[Job]]]:
    """The job and its replicas, not yet started; all end with the block."""
    names = [f"{spec.name}/replica-{number}" for number in range(1, replicas + 1)]
    with ExitStack() as stack:
        job = stack.enter_context(Job(spec, patience, standby))
        spare = [stack.enter_context(Job(replace(spec, name=name), patience)) for name in names]
        yield job, spare


def start_together(job: Job, replicas: Sequence[Job]) -> JobInfo:
    """Start them all at once, as `Job.start` does one; what the job says.

    Raises UserError when the cluster cannot hold them, or when data or configuration are wrong.
    """
    job.place()
    for number, replica in enumerate(replicas, start=1):
        try:
            replica.place()
        except UserError as error:
            raise UserError(f"cluster.probe_replicas={len(replicas)}: replica {number} has no room: {error}") from error
    jobs = [job, *replicas]
    infos: list[JobInfo] = []
    side_by_side(list(enumerate(each.meet for each in jobs)), infos.append, give_up=Copies(job, replicas).close)
    return infos[0]
