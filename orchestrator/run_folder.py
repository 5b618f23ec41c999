"""What lies where in the folder of one run, and how its result is written."""

import json
import os
from pathlib import Path
from typing import Any

from orchestrator.errors import UserError
from orchestrator.journal_file import JOURNAL

RESULT = "result.json"
WEIGHTS = "weights.safetensors"
SNAPSHOTS = "snapshots"


def require_new(folder: Path) -> None:
    """Refuse to train into a folder that already holds a run."""
    if (folder / JOURNAL).exists():
        raise UserError(
            f"{folder} already holds a run; go on with it by 'orchestrate resume {folder}', "
            "or choose another folder with hydra.run.dir=…"
        )


def write_result(folder: Path, result: dict[str, Any]) -> None:
    """Write result.json, the outcome of the run for other programs, so that nobody ever meets half of it."""
    temporary = folder / f".{RESULT}.{os.getpid()}"
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(result, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / RESULT)
