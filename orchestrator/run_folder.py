"""What lies where in the folder of one run, and how its result is written."""

import json
import os
from pathlib import Path
from typing import Any

from orchestrator.errors import UserError
from orchestrator.journal_file import JOURNAL

RESULT = "result.json"
WEIGHTS = "weights.safetensors"
PLAN = "plan.json"
SNAPSHOTS = "snapshots"
_LONGEST = 1e10  # seconds


def require_new(folder: Path) -> None:
    """Refuse to train into a folder that already holds a run."""
    if (folder / JOURNAL).exists():
        raise UserError(
            f"{folder} already holds a run; go on with it by 'orchestrate resume {folder}', "
            "or choose another folder with hydra.run.dir=…"
        )


def require_no_links(folder: Path) -> None:
    """Refuse a run folder with symbolic links in it: what is written, pruned or swept there would lie elsewhere."""
    for place, folders, files in os.walk(folder):
        for path in (Path(place) / name for name in (*folders, *files)):
            if path.is_symlink():
                raise UserError(
                    f"{path} is a symbolic link, which no run makes and which would lead writing out of the run "
                    "folder; remove it, or put in its place what it points to"
                )


def read_result(folder: Path) -> dict[str, Any]:
    """What result.json says; nothing where there is none. UserError for what no run writes."""
    try:
        result = json.loads((folder / RESULT).read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{folder / RESULT} cannot be read; remove it, `orchestrate resume` writes it anew") from error
    if not _is_result(result):
        raise UserError(f"{folder / RESULT} is no run's result; remove it, `orchestrate resume` writes it anew")
    return dict(result)


def _is_result(values: Any) -> bool:
    if not isinstance(values, dict):
        return False
    seconds, plan = values.get("wall_seconds", 0), values.get("plan")
    return type(seconds) in (int, float) and 0 <= seconds < _LONGEST and (plan is None or isinstance(plan, dict))


def write_result(folder: Path, result: dict[str, Any]) -> None:
    """Write result.json, the outcome of the run for other programs, so that nobody ever meets half of it."""
    temporary = folder / f".{RESULT}.{os.getpid()}"
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(result, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / RESULT)
