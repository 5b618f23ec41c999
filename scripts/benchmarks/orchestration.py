"""What orchestration costs: the same model on the same text, by plain DDP and by a job on Ray.

Both gangs of two ranks stay up and take turns, so that a noisy machine disturbs both alike; the ratio is the median
over rounds of plain seconds by job seconds. A whole `orchestrate run` beforehand gives the time from the command to
the first step, and the share of its time that recording takes.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter, sleep
from typing import Any

from benchmark_parts.snapshot_cost import STRETCH, measure_snapshots

from orchestrator.cluster.connection import ClusterOptions, connect
from orchestrator.cluster.job import Job, JobSpec
from orchestrator.events import SnapshotSaved, StepsTrained, Validated
from orchestrator.journal_file import Entry, read_entries
from orchestrator.run_folder import JOURNAL

Row = dict[str, Any]
RANKS = 2
BATCH = 8
CONTEXT = 128
RATE = 1e-3
STEPS = 20  # a round, about a second
WARM_UP = 5
PLAIN = Path(__file__).parent / "plain_ddp.py"


def run(quick: bool) -> tuple[list[Row], dict[str, Any]]:
    """A row a side with the seconds of each round; others for snapshots, restores, a run. Memory in MB (10⁶ bytes)."""
    whole = measure_run(steps=60 if quick else 400)
    with connect(ClusterOptions(workers=RANKS)), Job(job_spec()) as job, PlainGang() as plain:
        info = job.start()
        seconds = take_turns(plain, job, rounds=8 if quick else 40)
        plain_peak, job_peak = peak_megabytes(plain.pids), peak_megabytes(job.pids)
        snapshots = measure_snapshots(job, RATE, rounds=3 if quick else 15)
        snapshot, restores = measure_restores(job, times=10 if quick else 50)
        kept_peak = peak_megabytes(job.pids)
    rows = [
        row("plain", STEPS, seconds["plain"], peak_megabytes=plain_peak),
        row("job", STEPS, seconds["job"], peak_megabytes=job_peak, startup_seconds=info.seconds),
        row("job, with snapshots", STRETCH, [saving for saving, _ in snapshots]),
        row("job, without", STRETCH, [alone for _, alone in snapshots]),
        row("job, restores", 0, restores, peak_megabytes=kept_peak),
        whole,
    ]
    ratios = [plain / ours for plain, ours in zip(seconds["plain"], seconds["job"], strict=True)]
    return rows, {
        "steps_per_second_ratio": median(ratios),
        "startup_seconds": whole["startup_seconds"],
        "job_startup_seconds": info.seconds,
        "recording_share": whole["recording_share"],
        "peak_memory_over_plain": job_peak - plain_peak,
        "peak_memory_over_plain_with_a_snapshot": kept_peak - plain_peak,
        "snapshot_cost": median(saving / alone for saving, alone in snapshots) - 1,
        "snapshot_megabytes": snapshot,
        "restore_milliseconds": 1000 * median(restores),
        "step_milliseconds": 1000 * median(seconds["job"]) / STEPS,
    }


def row(side: str, steps: int, seconds: list[float], **others: float) -> Row:
    """A row with every column; what was not measured is None."""
    empty = dict.fromkeys(("peak_megabytes", "startup_seconds", "recording_share"))
    return {"side": side, "steps": steps, "seconds": seconds, **empty, **others}


def job_spec() -> JobSpec:
    """What plain_ddp.py trains, for our workers."""
    model = {"_target_": "trainers.models.transformer.Transformer", "_partial_": True}
    task = {"_target_": "trainers.tasks.language_model.LanguageModel", "model": model, "context": CONTEXT}
    optimizer = {"_target_": "torch.optim.AdamW", "_partial_": True, "betas": [0.9, 0.95], "weight_decay": 0.01}
    return JobSpec("benchmark", task, optimizer, {"batch_size": BATCH, "clip": 1.0}, world_size=RANKS)


class PlainGang:
    """plain_ddp.py on every rank, waiting for numbers of steps."""

    def __enter__(self) -> PlainGang:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self._ranks = [_plain_rank(rank, port) for rank in range(RANKS)]
        self.pids = [process.pid for process in self._ranks]
        return self

    def train(self, steps: int) -> float:
        """Take steps; returns their seconds."""
        for process in self._ranks:
            assert process.stdin is not None
            process.stdin.write(f"{steps}\n")
            process.stdin.flush()
        assert self._ranks[0].stdout is not None
        return float(self._ranks[0].stdout.readline().split()[0])

    def __exit__(self, *_: object) -> None:
        for process in self._ranks:
            process.kill()
            process.communicate()


def _plain_rank(rank: int, port: int) -> subprocess.Popen[str]:
    place = {"RANK": str(rank), "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return subprocess.Popen(
        [sys.executable, str(PLAIN)],
        env={**os.environ, **place, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def take_turns(plain: PlainGang, job: Job, rounds: int) -> dict[str, list[float]]:
    """Seconds of each round by side; who begins alternates."""
    sides = {"plain": lambda steps: plain.train(steps), "job": lambda steps: _timed_job(job, steps)}
    for train in sides.values():
        train(WARM_UP)
    seconds: dict[str, list[float]] = {"plain": [], "job": []}
    for number in range(rounds):
        for side in sorted(sides, reverse=number % 2 == 0):
            seconds[side].append(sides[side](STEPS))
    return seconds


def _timed_job(job: Job, steps: int) -> float:
    begin = perf_counter()
    job.train([RATE] * steps)
    return perf_counter() - begin


def measure_restores(job: Job, times: int) -> tuple[float, list[float]]:
    """Size of a snapshot in MB, and the seconds of each return to it after a step."""
    job.keep("here")
    with tempfile.TemporaryDirectory() as folder:
        (inner := Path(folder) / "snapshot").mkdir()
        job.save(inner)
        size = sum(path.stat().st_size for path in inner.iterdir()) / 1e6
    seconds = []
    for _ in range(times):
        job.train([RATE])
        begin = perf_counter()
        job.rewind("here")
        seconds.append(perf_counter() - begin)
    return size, seconds


def measure_run(steps: int) -> Row:
    """One `orchestrate run` with a constant rate, from the command to its end."""
    with tempfile.TemporaryDirectory() as outputs:
        folder = Path(outputs) / "run"
        options = ["lr=constant", f"steps={steps}", "evaluation=none", f"outputs={outputs}", f"hydra.run.dir={folder}"]
        begin = monotonic()
        command = [str(Path(sys.executable).with_name("orchestrate")), "run", *options]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while process.poll() is None and not _is_ready(folder / JOURNAL):
            sleep(0.05)
        startup = monotonic() - begin
        if process.wait() != 0:
            raise RuntimeError(f"{' '.join(command)} failed.")
        entries = read_entries(folder / JOURNAL)
    seconds = [entry.event.seconds for entry in entries if isinstance(entry.event, StepsTrained)]
    return row("orchestrate run", steps, seconds, startup_seconds=startup, recording_share=recording_share(entries))


def recording_share(entries: list[Entry]) -> float:
    """`recording_seconds` as a share of the time in which they lie."""
    at = [entry.at for entry in entries if isinstance(entry.event, StepsTrained)]
    return recording_seconds(entries) / (at[-1] - at[0])


def recording_seconds(entries: list[Entry]) -> float:
    """From the first report of steps to the last, the time that is neither steps, validation nor snapshots."""
    places = [place for place, entry in enumerate(entries) if isinstance(entry.event, StepsTrained)]
    between = entries[places[0] + 1 : places[-1] + 1]
    work = [
        entry.event.seconds for entry in between if isinstance(entry.event, StepsTrained | Validated | SnapshotSaved)
    ]
    return between[-1].at - entries[places[0]].at - sum(work)


def _is_ready(journal: Path) -> bool:
    return journal.is_file() and '"JobReady"' in journal.read_text()


def peak_megabytes(pids: list[int]) -> float:
    """The largest peak of resident memory among processes, in MB."""
    peaks = []
    for pid in pids:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        peaks.append(next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("VmHWM")))
    return max(peaks)
