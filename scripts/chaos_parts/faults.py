"""What can be done to a training, and to the MLflow server that it tells of itself."""

import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from chaos_parts.training import Training


class Tracking:
    """An MLflow server on this machine, whose database outlives it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = int(probe.getsockname()[1])
        self.database = f"sqlite:///{folder / 'mlflow.db'}"
        self.uri = f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Begin to serve; it answers some seconds later."""
        command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--workers", "1"]
        self._process = subprocess.Popen(
            [*command, "--port", str(self._port), "--backend-store-uri", self.database],
            cwd=self._folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},  # those processes would outlive it
        )  # fmt: skip

    def kill(self) -> None:
        """SIGKILL to all of its processes."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


Fault = Callable[[Training, Tracking, random.Random], bool]  # whether there was anything to do it to


def _to_a_worker(number: int) -> Fault:
    def fault(training: Training, tracking: Tracking, chance: random.Random) -> bool:
        workers = training.workers()
        return bool(workers) and _signal(chance.choice(workers), number)

    return fault


def _to_the_driver(number: int) -> Fault:
    def fault(training: Training, tracking: Tracking, chance: random.Random) -> bool:
        if not _signal(training.pid, number):
            return False
        training.finished()
        training.go_on()
        return True

    return fault


def _flip_a_byte(training: Training, tracking: Tracking, chance: random.Random) -> bool:
    """In the newest snapshot, and have it read."""
    path = training.newest_snapshot()
    if path is None:
        return False
    with suppress(OSError), path.open("r+b") as file:
        place = chance.randrange(path.stat().st_size)
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1 << chance.randrange(8)]))
        return _to_a_worker(signal.SIGKILL)(training, tracking, chance)
    return False


def _server_killed(training: Training, tracking: Tracking, chance: random.Random) -> bool:
    tracking.kill()
    tracking.start()
    return True


def _signal(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


FAULTS: dict[str, tuple[float, Fault]] = {  # with how often each comes, relative to the others
    "worker killed": (4, _to_a_worker(signal.SIGKILL)),
    "worker stopped": (2, _to_a_worker(signal.SIGSTOP)),
    "worker told to end": (1, _to_a_worker(signal.SIGTERM)),
    "driver killed": (1.5, _to_the_driver(signal.SIGKILL)),
    "driver told to end": (1, _to_the_driver(signal.SIGTERM)),
    "snapshot's bit flipped": (1.5, _flip_a_byte),
    "MLflow server killed": (1, _server_killed),
}
