"""Whole trainings on one machine that share one MLflow database and one plan cache: side by side, and in a sweep."""

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

Json = dict[str, object]
ORCHESTRATE = str(Path(sys.executable).with_name("orchestrate"))
TINY = [
    "run",
    "task=tabular",
    "steps=40",
    "lr=constant",
    "cluster.workers=2",
    "communication=planned",
    "topology=ring:ranks=2",
]
LONGEST = 7200.0  # seconds


def carry_runs(folder: Path, options: argparse.Namespace) -> Json:
    """So many commands at once."""
    begin = time.monotonic()
    processes = [
        _started(folder, *TINY, f"seed={number}", f"hydra.run.dir={folder / 'runs' / str(number)}")
        for number in range(options.runs)
    ]
    statuses = Counter(process.wait(LONGEST) for process in processes)
    return {"wall": round(time.monotonic() - begin, 1), "exit": dict(statuses), **_left(folder)}


def carry_sweep(folder: Path, options: argparse.Namespace) -> Json:
    """So many runs one after another in one command."""
    rates = ",".join(f"{0.001 * (1 + number):.3f}" for number in range(options.runs))
    begin = time.monotonic()
    process = _started(folder, *TINY[:1], "-m", *TINY[1:], f"lr.rate={rates}", f"hydra.sweep.dir={folder / 'runs'}")
    status = process.wait(LONGEST)
    wall = time.monotonic() - begin
    return {"wall": round(wall, 1), "a_run": round(wall / options.runs, 2), "exit": status, **_left(folder)}


def _started(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    database = f"tracking.uri=sqlite:///{folder}/mlflow.db"
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "RAY_worker_niceness": "0"}
    with (folder / "output").open("ab") as output:
        return subprocess.Popen(
            [ORCHESTRATE, *arguments, database, f"outputs={folder}"],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def _left(folder: Path) -> Json:
    """How the runs ended by their own word and by MLflow's, and what the plan cache holds."""
    from mlflow import MlflowClient

    results = [json.loads(path.read_text()) for path in (folder / "runs").glob("*/result.json")]
    client = MlflowClient(tracking_uri=f"sqlite:///{folder}/mlflow.db")
    experiments = [each.experiment_id for each in client.search_experiments()]
    recorded = client.search_runs(experiments, max_results=1000)
    return {
        "results": dict(Counter(result["state"] for result in results)),
        "mlflow": dict(Counter(run.info.status for run in recorded)),
        "plans": len(list((folder / "cache" / "comm-plans").glob("*.json"))),
    }
