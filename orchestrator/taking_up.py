"""Going back to the newest good snapshot, after a kill of the whole run or with new workers in place of failed ones."""

from collections.abc import Sequence

from orchestrator.cluster.job import Job
from orchestrator.cluster.snapshots import SnapshotStore, StoredSnapshot
from orchestrator.events import Event, ProbeRan, RateLowered, SnapshotSaved, Warned
from orchestrator.execution import Execution, Progress
from orchestrator.learning_rate.policy import Policy
from orchestrator.recording import Recording
from orchestrator.run_folder import SNAPSHOTS


def take_up(
    execution: Execution, policy: Policy, job: Job, store: SnapshotStore, recording: Recording
) -> StoredSnapshot | None:
    """Go back to the newest snapshot that is good; probes that were run after it are not run again."""
    snapshot, skipped = store.newest(lambda found: _holds(found, recording.events))
    for sentence in skipped:
        recording.emit(Warned(sentence))
    store.discard_after(snapshot.step if snapshot else -1)
    if snapshot is not None:
        _stand_at(snapshot, execution, policy, job)
        if not _told_of(snapshot, recording.events):
            recording.emit(SnapshotSaved(snapshot.step, f"{SNAPSHOTS}/{snapshot.path.name}", 0.0))
    execution.remember(event for event in recording.events if isinstance(event, ProbeRan))
    return snapshot


def _stand_at(snapshot: StoredSnapshot, execution: Execution, policy: Policy, job: Job) -> None:
    job.load(snapshot.path, snapshot.content)
    policy.load_state(snapshot.content["policy"])
    execution.step = snapshot.step
    if (within := snapshot.content.get("within")) is not None:
        validation = [(steps, loss) for steps, loss in within["validation"]]
        execution.begun = Progress(within["first_step"], within["factor"], within["losses"], validation)


def _holds(snapshot: StoredSnapshot, events: Sequence[Event]) -> bool:
    """Whether it is not of a training that diverged later on."""
    begun = snapshot.content.get("within")
    lowered = [event for event in events if isinstance(event, RateLowered)]
    return begun is None or not any(
        event.first_step == begun["first_step"] and event.factor < begun["factor"] for event in lowered
    )


def _told_of(snapshot: StoredSnapshot, events: Sequence[Event]) -> bool:
    """Whether the process that took it still came to say so."""
    return any(isinstance(event, SnapshotSaved) and event.step == snapshot.step for event in events)
