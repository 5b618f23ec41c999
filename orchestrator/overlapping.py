"""`overlap=searched`: the gang finds how its steps overlap, once a run; whoever comes later follows what was found.

Sums of three and more ranks depend on how gradients are put into buckets, so that a run keeps its first ones.
"""

from collections.abc import Sequence

from orchestrator.cluster.job import Job
from orchestrator.config import Config
from orchestrator.events import OverlapPlanned, Warned
from orchestrator.recording import Recording


def overlap(
    config: Config, workers: int, job: Job, replicas: Sequence[Job], recording: Recording
) -> OverlapPlanned | None:
    """Let the job and its replicas overlap their steps in one way, if they are to; what is followed.

    Called before their first step.
    """
    if config.overlap.mode == "off":
        return None
    if workers == 1:
        recording.emit(Warned("overlap=searched has nothing to hide with one worker; steps go as with overlap=off"))
        return None
    known = next((event for event in recording.events if isinstance(event, OverlapPlanned)), None)
    if known is None:
        known = OverlapPlanned(**job.plan_overlap())
        recording.emit(known)
        followers = list(replicas)
    else:
        followers = [job, *replicas]
    for each in followers:
        each.follow_overlap(known.layout)
    return known
