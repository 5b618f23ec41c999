"""Training itself: steps, validation, snapshots. Importing this package loads no torch; its names load it when used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainers.options import TrainerOptions
    from trainers.snapshot import Snapshot
    from trainers.tasks.task import Splits, Task
    from trainers.trainer import Trainer

__all__ = ["Snapshot", "Splits", "Task", "Trainer", "TrainerOptions"]

_HOMES = {
    "Snapshot": "trainers.snapshot",
    "Splits": "trainers.tasks.task",
    "Task": "trainers.tasks.task",
    "Trainer": "trainers.trainer",
    "TrainerOptions": "trainers.options",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'trainers' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)
