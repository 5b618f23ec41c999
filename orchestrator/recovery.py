"""What follows from a failure within a launch: new workers, a lower rate and new workers, or the end of the run."""

from dataclasses import dataclass, replace
from time import monotonic, sleep

from orchestrator.cluster.connection import NoRoomError
from orchestrator.cluster.failures import JobFailed
from orchestrator.cluster.nodes import ranks_held
from orchestrator.config import Config
from orchestrator.events import (
    ArmTakenUp,
    ProbeRan,
    RateLowered,
    Recovered,
    RunResumed,
    SnapshotSaved,
    StepsTrained,
    Warned,
)
from orchestrator.execution import TrainingDiverged
from orchestrator.recording import Recording
from orchestrator.run_state import classified

LONGEST_PAUSE = 30.0  # seconds
MOST_HALVINGS = 3  # of one stage's rates
_NEWS_SECONDS = 180.0  # until Ray has surely noticed that a node is gone
_LOOK_SECONDS = 1.0  # between two looks for a lost node
_PROGRESS = (ProbeRan, SnapshotSaved)  # what is not lost by a further failure


@dataclass(frozen=True)
class _Failed:
    """What the workers that are being replaced failed of."""

    what: str
    rank: int | None
    reason: str
    log: list[str]
    noticed: float


class Recovery:
    """Counts failures without progress in between: after `max_failures` of them the run ends."""

    def __init__(self, config: Config, recording: Recording) -> None:
        self._config, self._recording = config, recording
        self._resumed = len(recording.events) > 1  # a new run has only begun
        self._failures = 0
        self._workers = config.cluster.workers
        self._seen = len(recording.events)  # how many events there were at the last failure
        self._failed: _Failed | None = None

    @property
    def goes_on(self) -> bool:
        """Whether the next workers take up what others have begun."""
        return self._resumed or self._failed is not None

    def staffed(self) -> Config:
        """The configuration for the next workers: fewer of them where it is elastic and the cluster holds no more."""
        cluster = self._config.cluster
        if not cluster.elastic or not self.goes_on:
            return self._config
        copies = 1 + cluster.probe_replicas
        held = ranks_held(cluster.cpus_per_worker, cluster.gpus_per_worker) // copies
        workers = max(1, min(cluster.workers, held))
        if workers < self._workers:
            self._recording.emit(
                Warned(
                    f"the cluster holds {workers} of {cluster.workers} workers: a step sees fewer samples from now on, "
                    "so that losses and weights are not those of an undisturbed run"
                )
            )
        self._workers = workers
        return replace(self._config, cluster=replace(cluster, workers=workers))

    def factor_at(self, stage: int, step: int) -> float:
        """What a stage's scheduled rates are multiplied by in a training that begins at a step."""
        lowered = [each for each in self._lowered(stage) if each.first_step <= step]
        return lowered[-1].factor if lowered else 1.0

    def allows(self, error: Exception) -> bool:
        """Whether new workers are to go on after this error; makes a pause that grows with the failures in a row."""
        if not classified(error).again:
            return False
        match error:
            case NoRoomError():
                return self._waits()
            case TrainingDiverged():
                return self._lowers(error)
            case JobFailed():
                return self._replaces(error)
        return False

    def taken_up(self, step: int, snapshot: str | None) -> None:
        """The run stands at a snapshot, or at its beginning, and goes on: say so."""
        failed, self._failed = self._failed, None
        if failed is None:
            self._recording.emit(RunResumed(step, snapshot))
            return
        lost = max(self._reached() - step, 0)
        seconds = monotonic() - failed.noticed
        self._recording.emit(
            Recovered(step, snapshot, failed.what, failed.rank, failed.reason, lost, seconds, failed.log)
        )

    def _replaces(self, error: JobFailed) -> bool:
        progressed = any(isinstance(event, _PROGRESS) for event in self._recording.events[self._seen :])
        self._seen = len(self._recording.events)
        self._failures = 1 if progressed else self._failures + 1
        if self._failures > (most := self._config.cluster.max_failures):
            return False
        self._failed = _Failed(error.kind, error.rank, str(error), error.log, error.noticed)
        count = f", failure {self._failures} of at most {most} in a row" if self._failures > 1 else ""
        self._recording.emit(Warned(f"{error}; new workers go on from the newest snapshot{count}"))
        sleep(min(2.0 ** (self._failures - 1) - 1, LONGEST_PAUSE))
        return True

    def _waits(self) -> bool:
        """There was room for the workers that failed: a node is gone, and may come back."""
        cluster = self._config.cluster
        longest = max(cluster.node_seconds, _NEWS_SECONDS) if cluster.elastic else cluster.node_seconds
        if self._failed is None or monotonic() - self._failed.noticed > longest:
            return False
        sleep(_LOOK_SECONDS)
        return True

    def _lowers(self, error: TrainingDiverged) -> bool:
        earlier = self._lowered(error.stage)
        if len(earlier) == MOST_HALVINGS:
            return False
        factor = (earlier[-1].factor if earlier else 1.0) / 2
        self._recording.emit(RateLowered(error.stage, error.first_step, factor, error.step, error.loss))
        self._failed = _Failed("diverged", None, str(error), [], monotonic())
        return True

    def _lowered(self, stage: int) -> list[RateLowered]:
        events = self._recording.events
        return [event for event in events if isinstance(event, RateLowered) and event.stage == stage]

    def _reached(self) -> int:
        """The real step that the failed workers had reached, as far as it was told."""
        for event in reversed(self._recording.events):
            match event:
                case StepsTrained() | ArmTakenUp():
                    return event.first_step + len(event.rates)
                case RunResumed() | Recovered():
                    return event.step
        return 0
