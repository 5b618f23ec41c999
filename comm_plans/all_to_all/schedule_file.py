"""A schedule for a cluster as a file that other programs can execute: one table of all transfers, as numpy arrays."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np

from comm_plans.all_to_all.schedule import Schedule, Transfers
from comm_plans.errors import PlansError
from comm_plans.files import check_folder, write_atomically

ENDING = ".npz"


def check_schedule_file(path: Path) -> None:
    """Raise PlansError unless a schedule can be written there."""
    if path.suffix != ENDING:
        raise PlansError(f"{str(path)[:80]!r} does not end in {ENDING}, as the schedule of a cluster does; name it so")
    check_folder(str(path))


def save_schedule(schedule: Schedule, path: Path) -> None:
    """Write the columns `step, source, target, origin, destination, low, high` of all transfers, in order of steps.

    Raises PlansError for another ending than .npz or a folder that is not there.
    """
    check_schedule_file(path)
    steps = list(schedule.steps())
    numbers = np.repeat(np.arange(len(steps), dtype=np.int32), [len(step.low) for step in steps])
    table = Transfers(*map(np.concatenate, zip(*steps, strict=True)))
    file = BytesIO()
    np.savez(file, step=numbers, **table._asdict())
    write_atomically(path, file.getvalue())
