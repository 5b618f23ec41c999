"""Long journals, a million points for MLflow, and one plan cache that many processes use while some are killed."""

import argparse
import itertools
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from orchestrator.compare import comparison_table, read_runs
from orchestrator.events import JobReady, RunEnded, RunStarted, StepsTrained, Validated
from orchestrator.journal_file import JOURNAL, read_journal
from orchestrator.recorders.journal import Journal
from orchestrator.recorders.mlflow import MlflowRecorder
from orchestrator.recorders.report import write_report

Json = dict[str, object]
CONFIG = {
    "lr": {"name": "constant"},
    "task": {"_target_": "t.T"},
    "seed": 0,
    "cluster": {"workers": 1},
    "batch_size": 1,
}
CHUNK = 1000  # steps of one event, as a fast run tells them
PLANNER = Path(__file__).with_name("planner.py")


def timed(deed: Callable[[], object]) -> float:
    """Seconds that it takes."""
    begin = time.monotonic()
    deed()
    return round(time.monotonic() - begin, 2)


def events(folder: Path, steps: int, chunk: int) -> Iterator[object]:
    """A run of so many steps, told in chunks, validated after each tenth of it."""
    yield RunStarted("load", str(folder), CONFIG, {"stages": 1, "train_steps": steps, "probe_steps": 0}, 0.0)
    yield JobReady(1, "cpu", 1000, 1.0)
    for first in range(0, steps, chunk):
        losses = [1.0 + 1.0 / (1 + step) for step in range(first, first + chunk)]
        yield StepsTrained(1, first, [0.1] * chunk, losses, 0.01 * chunk)
        if first % max(steps // 10, 1) == 0:
            yield Validated(first + chunk, "validation", {"loss": losses[-1]}, 0.1)
    yield RunEnded("FINISHED", None, {"state": "FINISHED", "wall_seconds": 0.01 * steps})


def carry_journal(folder: Path, options: argparse.Namespace) -> Json:
    """Each step an event of its own: the longest journal that such a run can have."""

    def write() -> None:
        journal = Journal(folder / "run" / JOURNAL)
        for event in events(folder, options.steps, 1):
            journal.record(event)  # type: ignore[arg-type]
        journal.close()

    (folder / "run").mkdir()
    return {
        "write": timed(write),
        "bytes": (folder / "run" / JOURNAL).stat().st_size,
        "read": timed(lambda: read_journal(folder / "run" / JOURNAL)),
        "take_up": timed(lambda: Journal(folder / "run" / JOURNAL).close()),
        "compare": timed(lambda: comparison_table(read_runs([folder / "run"]))),
        "report": timed(lambda: write_report(folder / "run")),
    }


def carry_points(folder: Path, options: argparse.Namespace) -> Json:
    """A loss a step, told while training goes on, then everything that is left delivered to SQLite."""
    recorder = MlflowRecorder(folder / "run", f"sqlite:///{folder}/mlflow.db", "load", folder, close_seconds=36_000)

    def tell() -> None:
        for event in events(folder, options.points, CHUNK):
            recorder.record(event)  # type: ignore[arg-type]

    told, closed = timed(tell), timed(recorder.close)
    return {"told": told, "delivered": round(told + closed, 2), "missing": recorder.notice}


def carry_cache(folder: Path, options: argparse.Namespace) -> Json:
    """Processes that keep, look up, verify and prune at once; twice a second one of those at work is killed."""
    seeds = itertools.count(options.processes)
    planners = {seed: _planner(folder, seed) for seed in range(options.processes)}
    rng, until, kills = random.Random(0), time.monotonic() + options.seconds, 0
    while time.monotonic() < until:
        time.sleep(0.5)
        at_work = [seed for seed, each in planners.items() if each.poll() is None and _turns(folder, seed)]
        if at_work:
            planner = planners.pop(rng.choice(at_work))
            planner.kill()
            planner.wait()
            seed = next(seeds)
            planners[seed] = _planner(folder, seed)
            kills += 1
    complaints = [planner.communicate()[1].decode() for planner in planners.values() if planner.poll() is not None]
    for planner in planners.values():
        planner.kill()
        planner.wait()
    turns = sum(_turns(folder, seed) for seed in range(next(seeds)))
    return {"kills": kills, "turns": turns, "complaints": complaints}


def _turns(folder: Path, seed: int) -> int:
    path = folder / f"turns-{seed}"
    return path.stat().st_size if path.exists() else 0


def _planner(folder: Path, seed: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, str(PLANNER), str(folder), str(seed)], stderr=subprocess.PIPE)
