"""Every run of the benchmark, one after another; finished ones are kept in a file, so that a stopped benchmark goes on.

A row of the file (BENCH_CACHE; none unless set) counts as long as the code that made it is the same, comments and
layout aside.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmark_parts.kept_rows import KeptRows
from benchmark_parts.learning_rate.arm import Arm, Row
from benchmark_parts.learning_rate.populations import PopulationArm
from benchmark_parts.learning_rate.tasks import Task

import orchestrator.learning_rate

HERE = Path(__file__).parent
TRAINING = [HERE / name for name in ("data.py", "models.py", "tasks.py", "training.py", "arm.py", "arms.py")]
METHOD = sorted(Path(orchestrator.learning_rate.__file__).parent.glob("*.py"))
POPULATION = [HERE / "populations.py", Path(orchestrator.__file__).parent / "sweep" / "populations.py"]
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
    known = KeptRows()
    runs = list(runs)
    for number, run in enumerate(runs, start=1):
        if run.key not in known:
            begin = perf_counter()
            known[run.key] = run.arm.train(run.task, run.steps, run.seed)
            print(f"{number}/{len(runs)}  {_sentence(known[run.key])}  {perf_counter() - begin:.1f} s", flush=True)
    return [known[run.key] for run in runs]


@cache
def digest(files: tuple[Path, ...]) -> str:
    """Of the syntax trees of these files."""
    trees = "".join(ast.dump(ast.parse(path.read_text())) for path in files)
    return hashlib.sha256(trees.encode()).hexdigest()[:16]


def _sentence(row: Row) -> str:
    losses = f"validation {row['validation_loss']:.4f}, test {row['test_loss']:.4f}"
    return f"{row['task']} of {row['steps']}, seed {row['seed']}, {row['arm']}: {losses}"
