"""Every run of the benchmark, one after another; finished ones are kept in a file, so that a stopped benchmark goes on.

The file (BENCH_CACHE; none unless set) has a row of JSON a line. A row counts as long as the code that made it is the
same, comments and layout aside.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmark_parts.learning_rate.arm import Arm, Row
from benchmark_parts.learning_rate.populations import PopulationArm
from benchmark_parts.learning_rate.tasks import Task

import orchestrator.learning_rate

HERE = Path(__file__).parent
TRAINING = [HERE / name for name in ("data.py", "models.py", "tasks.py", "training.py", "arm.py", "arms.py")]
METHOD = sorted(Path(orchestrator.learning_rate.__file__).parent.glob("*.py"))
POPULATION = [HERE / "populations.py", Path(orchestrator.__file__).parent / "sweep.py"]
BESIDE_TRAINING = {
    "method": METHOD,
    "fixed rate": METHOD,
    "peer": [],
    "population": POPULATION,
}  # what else a row rests on


@dataclass(frozen=True)
class Run:
    """One arm on one task from one seed, with its budget of steps."""

    task: Task
    arm: Arm | PopulationArm
    steps: int
    seed: int

    @property
    def key(self) -> list[Any]:
        code = digest((*TRAINING, *BESIDE_TRAINING[self.arm.role]))
        return [self.task.name, self.arm.name, self.steps, self.seed, code]


def carry_out(runs: Iterable[Run]) -> list[Row]:
    """The rows of all runs, in their order; says how far it is after each that wasn't there yet."""
    file = os.environ.get("BENCH_CACHE")
    known = dict(_kept(Path(file))) if file else {}
    runs = list(runs)
    rows = []
    for number, run in enumerate(runs, start=1):
        key = json.dumps(run.key)
        if key not in known:
            begin = perf_counter()
            known[key] = run.arm.train(run.task, run.steps, run.seed)
            if file:
                _keep(Path(file), key, known[key])
            print(f"{number}/{len(runs)}  {_sentence(known[key])}  {perf_counter() - begin:.1f} s", flush=True)
        rows.append(known[key])
    return rows


@cache
def digest(files: tuple[Path, ...]) -> str:
    """Of the syntax trees of these files."""
    trees = "".join(ast.dump(ast.parse(path.read_text())) for path in files)
    return hashlib.sha256(trees.encode()).hexdigest()[:16]


def _kept(file: Path) -> Iterator[tuple[str, Row]]:
    """What the file holds; a line cut short by a kill is left out."""
    for line in file.read_text().splitlines() if file.exists() else []:
        try:
            key, row = json.loads(line)
        except ValueError:
            continue
        yield json.dumps(key), row


def _keep(file: Path, key: str, row: Row) -> None:
    with file.open("a") as lines:
        lines.write(json.dumps([json.loads(key), row]) + "\n")


def _sentence(row: Row) -> str:
    losses = f"validation {row['validation_loss']:.4f}, test {row['test_loss']:.4f}"
    return f"{row['task']} of {row['steps']}, seed {row['seed']}, {row['arm']}: {losses}"
