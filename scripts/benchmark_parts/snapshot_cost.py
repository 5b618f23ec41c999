"""What snapshots within a stage cost a training that goes on beside their writing."""

import tempfile
from pathlib import Path
from time import perf_counter

from orchestrator.cluster.job import Job
from orchestrator.cluster.snapshots import SnapshotStore
from orchestrator.execution import Execution, Progress
from orchestrator.learning_rate.policy import Train
from orchestrator.learning_rate.scheduled import ConstantOptions, Scheduled
from orchestrator.learning_rate.schedules import Constant
from orchestrator.saving import Saving

EVERY = 50  # steps
STRETCH = 2 * EVERY


def measure_snapshots(job: Job, rate: float, rounds: int) -> list[tuple[float, float]]:
    """Seconds of a stretch of steps in which two snapshots are taken and written, and of one without, by round."""
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        store, policy = SnapshotStore(Path(folder), keep=2), Scheduled(STRETCH, ConstantOptions(stages=1))
        for number in range(rounds):
            pair = {}
            for every in sorted((None, EVERY), key=bool, reverse=number % 2 == 0):
                begin = perf_counter()
                with Saving(job, store, policy, lambda event: None, every) as saving:
                    _train(job, rate, saving, every)
                pair[every] = perf_counter() - begin
            seconds.append((pair[EVERY], pair[None]))
    return seconds


def _train(job: Job, rate: float, saving: Saving, every: int | None) -> None:
    saving.within_stage(0, Progress(0))
    execution = Execution(job, lambda event: None, paused=saving.within_stage, pause_every=every)
    execution.carry_out(Train(0, Constant(rate), 0, STRETCH))
