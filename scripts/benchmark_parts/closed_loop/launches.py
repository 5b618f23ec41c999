"""Starts one arm as a person would, waits for its end, and makes a row of what it left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import Any

from benchmark_parts.closed_loop.cases import SAMPLES, VALIDATIONS, Arm, Case, Workload
from benchmark_parts.closed_loop.curves import Curve, curve_of_journal, curve_of_lines
from benchmark_parts.closed_loop.rows import load, row
from benchmark_parts.kept_rows import Row
from lab.ranks import run_command

from comm_plans.lab_state import LabState
from orchestrator.journal_file import JOURNAL, read_entries
from orchestrator.run_folder import read_result

PLAIN = Path(__file__).with_name("plain_ddp.py")
ORCHESTRATE = Path(sys.executable).with_name("orchestrate")
PATIENCE = 1800.0  # seconds, after which a launch counts as hung
ALIKE = ("evaluation=none", f"evaluation.validation_samples={SAMPLES}", "tracking=none")
UNAWARE = ("past=false",)  # of runs that came before


@dataclass(frozen=True)
class RayLab:
    """A lab with a Ray node on each rank. seconds: that it took to start."""

    workers: int
    seconds: float


def plain_row(case: Case, peak: float, seed: int, state: LabState) -> Row:
    """Plain DDP on every rank of the lab, from the launch of its processes to their end."""
    workload, before = case.workload, load()
    assert workload.steps is not None
    with tempfile.TemporaryDirectory() as folder:
        curve = Path(folder) / "curve.jsonl"
        own = {"peak": peak, "seed": seed, "samples": SAMPLES, "curve": str(curve)}
        options = workload.to_json() | own | {"validate_every": max(1, workload.steps // VALIDATIONS)}
        launched = time()
        code = run_command(state, [sys.executable, str(PLAIN), json.dumps(options)])
        seconds = time() - launched
        seen = curve_of_lines(_lines(curve), launched)
    failed = f"exit status {code}" if code else None
    return row("lab", case.name, f"plain {peak:g}", seed, seen, before, seconds=seconds, rate=peak, failed=failed)


def lab_row(case: Case, arm: Arm, seed: int, lab: RayLab) -> Row:
    """A launch on the lab's Ray, which was started before."""
    where = ("cluster=lab", f"cluster.workers={lab.workers}")
    return _launched("lab", case.name, case.workload, arm, seed, where, cluster_seconds=lab.seconds)


def local_row(workload: Workload, arm: Arm, seed: int, _: None) -> Row:
    """A launch on a Ray of its own on this machine."""
    return _launched("local", workload.task, workload, arm, seed, ())


def _launched(
    part: str, case: str, workload: Workload, arm: Arm, seed: int, where: Sequence[str], **others: Any
) -> Row:
    before = load()
    with tempfile.TemporaryDirectory() as outputs:
        folder = Path(outputs) / "run"
        options = [*workload.overrides, *where, *ALIKE, *UNAWARE, *arm.overrides, f"seed={seed}"]
        launched = time()
        said = _run([*options, f"outputs={outputs}", f"hydra.run.dir={folder}"], Path(outputs))
        seconds = time() - launched
        entries = read_entries(folder / JOURNAL) if (folder / JOURNAL).is_file() else []
        result = read_result(folder)
    curve = curve_of_journal(entries, launched) if entries else Curve([], [])
    found = {"seconds": seconds, "rate": _rate(result), "decided": _decided(result), "failed": said}
    return row(part, case, arm.name, seed, curve, before, **found, **others)


def _run(options: Sequence[str], folder: Path) -> str | None:
    """Launch and wait; returns None, or what a run that failed said last.

    Its plan cache is empty: nothing is known of the cluster.
    """
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "RAY_worker_niceness": "0"}
    try:
        done = subprocess.run(
            [ORCHESTRATE, "run", *options],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"did not end within {PATIENCE:g} s"
    if done.returncode == 0:
        return None
    return (done.stdout.strip().splitlines() or [f"exit status {done.returncode}"])[-1]


def _lines(file: Path) -> Iterator[tuple[float, float]]:
    for line in file.read_text().splitlines() if file.exists() else []:
        at, loss = json.loads(line)
        yield at, loss


def _rate(result: Mapping[str, Any]) -> float | None:
    """The highest rate of the run."""
    return max((rate for _, rate in result.get("lr_by_step", ())), default=None)


def _decided(result: Mapping[str, Any]) -> str | None:
    """What was decided, as gain and cost of each."""
    each = [f"{made['what']} ×{made['gain']:.2f} for {made['seconds']:.1f} s" for made in result.get("decided", ())]
    return ", ".join(each) or None
