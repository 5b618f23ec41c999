"""AutoLRS beside tuned schedules and methods without a schedule, every step of search and tuning counted.

    scripts/fetch_benchmark_data.sh                     once: data that no package brings along
    BENCH_CACHE=runs.jsonl python scripts/bench.py learning-rate --json FILE

Test losses of small tasks on real data, three seeds each. Search and tuning see validation losses alone. A full run
takes about an hour of one core; with BENCH_CACHE a stopped one goes on. Quick: three tasks, two seeds,
few steps. Tasks whose data are missing are left out, which is said.
"""

from __future__ import annotations

from typing import Any

from benchmark_parts.learning_rate.arm import Row
from benchmark_parts.learning_rate.arms import autolrs, fixed_rates, peers, tuned_at
from benchmark_parts.learning_rate.data import MissingDataError
from benchmark_parts.learning_rate.forecast_figures import forecast_figures
from benchmark_parts.learning_rate.populations import population_figures, populations
from benchmark_parts.learning_rate.runs import Run, carry_out
from benchmark_parts.learning_rate.summary import Results, summarise
from benchmark_parts.learning_rate.tasks import TASKS, Task

SEEDS = 3
LONG_STEPS = 4000
LONG_TASKS = ("kjv", "foldoc", "fmcnn")
LONG_PEAKS = (3.2e-3, 1e-2, 3.2e-2)
POPULATION_TASKS = ("shuttle", "ae", "kjv")  # each costs five runs' steps and the handing over of states
TIMED_TASK, TIMED_STEPS = "kjv", 12_000  # more than a minute
QUICK_TASKS = ("shuttle", "ae", "flights")
QUICK_STEPS = 300


def run(quick: bool) -> tuple[list[Row], dict[str, Any]]:
    """A row a run, and the summary over the tasks that count."""
    tasks, left_out = _available([task for task in TASKS if not quick or task.name in QUICK_TASKS])
    parts = quick_parts(tasks) if quick else full_parts(tasks)
    rows = {part: carry_out(runs) for part, runs in parts.items()}
    counted = {task.label for task in tasks if task.counted}
    usual = Results([row for row in rows["usual"] if row["task"] in counted])
    summary = summarise(usual, Results(rows["long"]), rows["timed"])
    return [{"part": part, **row} for part in rows for row in rows[part]], {
        **summary,
        **population_figures(rows["populations"], Results(rows["usual"])),
        **forecast_figures(),
        "tasks_left_out": left_out,
    }


def full_parts(tasks: list[Task]) -> dict[str, list[Run]]:
    """Every arm on every task; the strongest tuned ones over long runs; populations; one run that can be timed."""
    by_name = {task.name: task for task in tasks}
    long_tasks = [by_name[name] for name in LONG_TASKS if name in by_name]
    searched = [by_name[name] for name in POPULATION_TASKS if name in by_name]
    return {
        "usual": [
            Run(task, arm, task.steps, seed)
            for seed in range(SEEDS)
            for task in tasks
            for arm in (autolrs(), *peers(), *fixed_rates())
        ],
        "long": [
            Run(task, arm, LONG_STEPS, seed)
            for seed in range(SEEDS)
            for task in long_tasks
            for arm in (autolrs(), *tuned_at(LONG_PEAKS))
        ],
        "populations": [
            Run(task, arm, task.steps, seed) for seed in range(SEEDS) for task in searched for arm in populations()
        ],
        "timed": [Run(by_name[TIMED_TASK], autolrs(), TIMED_STEPS, seed=0)],
    }


def quick_parts(tasks: list[Task]) -> dict[str, list[Run]]:
    """The same with few steps, two seeds, and for long runs the first task at twice its steps."""
    arms = (autolrs(), *peers(), *fixed_rates())
    long_arms = (autolrs(), *tuned_at(LONG_PEAKS))
    long = [Run(tasks[0], arm, 2 * QUICK_STEPS, seed) for seed in range(2) for arm in long_arms]
    return {
        "usual": [Run(task, arm, QUICK_STEPS, seed) for seed in range(2) for task in tasks for arm in arms],
        "long": long,
        "populations": [Run(tasks[0], arm, QUICK_STEPS, seed=0) for arm in populations()],
        "timed": [each for each in long if each.arm.role == "method"],
    }


def _available(tasks: list[Task]) -> tuple[list[Task], list[str]]:
    """The tasks whose data are there, and the names of the others."""
    there, left_out = [], []
    for task in tasks:
        try:
            task.data()
            there.append(task)
        except MissingDataError as missing:
            print(f"{task.name} is left out: {missing}")
            left_out.append(task.name)
    return there, left_out
