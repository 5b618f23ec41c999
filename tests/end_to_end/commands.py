"""Running the commands as a person would: as subprocesses, in a folder of their own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ORCHESTRATE = str(Path(sys.executable).with_name("orchestrate"))
SMALL = ["task=tabular", "steps=600", "tracking=none", "lr=autolrs"]


def orchestrate(folder: Path, *arguments: str, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run `orchestrate` in a folder and wait."""
    return subprocess.run(
        [ORCHESTRATE, *arguments], cwd=folder, capture_output=True, text=True, timeout=timeout, check=False
    )


def run_folder(folder: Path, name: str) -> str:
    """The override that puts a run into a folder of that name."""
    return f"hydra.run.dir={folder / name}"


def killed_when(
    folder: Path,
    arguments: Sequence[str],
    ready: Callable[[], bool],
    number: int = signal.SIGKILL,
    timeout: float = 300,
    whole_group: bool = False,
) -> int:
    """Start `orchestrate`, send it (or all it started, too) a signal as soon as `ready`, and return its exit code."""
    process = subprocess.Popen(
        [ORCHESTRATE, *arguments],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + timeout
    while not ready():
        assert process.poll() is None, "the run ended before it could be disturbed"
        assert time.monotonic() < deadline, "the run never came to the point where it was to be disturbed"
        time.sleep(0.02)
    (os.killpg if whole_group else os.kill)(process.pid, number)
    return process.wait(timeout=120)
