"""A real run as a person starts it, watched through its journal, and disturbed at a chosen point."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator.cluster.reaper import descendants, read
from orchestrator.events import Event, ProbeRan, StepsTrained
from orchestrator.journal_file import read_entries

ORCHESTRATE = str(Path(sys.executable).with_name("orchestrate"))
HERE = Path(__file__).parent
STEPS = 240
LONGEST = 600.0  # seconds that anything is waited for
TASK = ["task=own", "task._target_=slow_task.SlowTask", f"steps={STEPS}", "batch_size=8", "tracking=none"]
CONSTANT = ["lr=constant", "lr.rate=0.01"]
SEARCH = ["lr=autolrs"]


class Run:
    """One run folder under `place` and the process that works on it.

    ray: the process that holds its Ray; None: the run itself. environment: of the command, besides this process's.
    """

    def __init__(
        self, place: Path, *overrides: str, ray: int | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self._ray, self._environment = ray, environment or {}
        self.folder = place / "run"
        self.orders = place / "orders"
        self._place = place
        self._overrides = [*TASK, *overrides, f"+task.orders={self.orders}", f"hydra.run.dir={self.folder}"]
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int:
        """Of the driver."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> "Run":
        """`orchestrate run`, beside this process."""
        return self._begin("run", *self._overrides)

    def resume(self) -> "Run":
        """`orchestrate resume`, beside this process."""
        return self._begin("resume", str(self.folder), "task._target_=slow_task.SlowTask")

    def events(self) -> list[Event]:
        """What its journal tells so far."""
        journal = self.folder / "journal.jsonl"
        return [entry.event for entry in read_entries(journal)] if journal.exists() else []

    def told(self, kind: type[Event]) -> list[Any]:
        """The events of a kind so far."""
        return [event for event in self.events() if isinstance(event, kind)]

    def wait_for(self, ready: Callable[["Run"], bool]) -> None:
        """Until the journal shows a point; fails if the run ends before."""
        until = time.monotonic() + LONGEST
        while not ready(self):
            assert self._process is not None
            assert self._process.poll() is None, f"the run ended before: {self.output()}"
            assert time.monotonic() < until, "the run never came to that point"
            time.sleep(0.01)

    def order(self, rank: int, word: str) -> None:
        """Let a rank do something in its next step."""
        unfinished = self.orders.with_suffix(".new")
        unfinished.write_text(f"{rank} {word}")
        unfinished.replace(self.orders)

    def workers(self) -> list[int]:
        """Process ids of the run's workers, in the order in which they were started."""
        return workers_of(self._ray or self.pid)

    def signal_worker(self, rank: int, number: int) -> None:
        """Send a signal to a worker that is up and at work."""
        until = time.monotonic() + LONGEST
        while (pid := self._pid_of(rank)) not in self.workers():
            assert time.monotonic() < until, "there is no such worker"
            time.sleep(0.01)
        os.kill(pid, number)

    def pause(self, seconds: float) -> None:
        """Stop the driver for a while."""
        os.kill(self.pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(self.pid, signal.SIGCONT)

    def ended(self) -> int:
        """Wait for the end; the exit status."""
        assert self._process is not None
        return self._process.wait(timeout=LONGEST)

    def snapshots(self) -> list[str]:
        """The names of its snapshots, oldest first."""
        return sorted(path.name for path in (self.folder / "snapshots").glob("step-*"))

    def result(self) -> dict[str, Any]:
        """What result.json says."""
        result: dict[str, Any] = json.loads((self.folder / "result.json").read_text())
        return result

    def output(self) -> str:
        """What the commands have printed so far."""
        return (self._place / "output").read_text()

    def _pid_of(self, rank: int) -> int:
        """Of the worker that has last been this rank; 0 before the first step."""
        left = self.orders.with_name(f"{rank}.pid")
        return int(left.read_text() or 0) if left.exists() else 0

    def close(self) -> None:
        """End whatever is left."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait()

    def _begin(self, *arguments: str) -> "Run":
        paths = [str(HERE), str(HERE / "jumping_clock"), os.environ.get("PYTHONPATH", "")]
        with (self._place / "output").open("a") as output:
            self._process = subprocess.Popen(
                [ORCHESTRATE, *arguments],
                cwd=HERE,
                env={**os.environ, **self._environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                text=True,
            )
        return self


StartRun = Callable[..., Run]


def workers_of(owner: int) -> list[int]:
    """Living worker processes of the Ray that a process holds, in the order in which they were started."""
    started = (number for number, _ in descendants(owner, spared=set()))
    return sorted(number for number in started if read(number, "cmdline").startswith(b"ray::Worker"))


def trained(steps: int) -> Callable[[Run], bool]:
    """A point: so many real steps have been told of."""
    return lambda run: any(each.first_step + len(each.rates) >= steps for each in run.told(StepsTrained))


def happened(kind: type[Event], times: int = 1) -> Callable[[Run], bool]:
    """A point: an event has come so often."""
    return lambda run: len(run.told(kind)) >= times


def probes_tried(run: Run) -> list[tuple[str | None, int]]:
    """Which trials the journal has, by arm and the steps before."""
    return [(each.arm, each.taken) for each in run.told(ProbeRan)]


def same_outcome(run: Run, undisturbed: Run, but: Sequence[str] = ()) -> None:
    """The run finished as if nothing had happened."""
    result, expected = run.result(), undisturbed.result()
    keys = ("state", "weights_sha256", "lr_by_step", "train_steps", "probe_steps", "validation_loss", "test")
    for key in keys:
        if key not in but:
            assert result[key] == expected[key], key
