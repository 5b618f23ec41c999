"""One training under chaos: started, followed through its journal, resumed whenever its driver is gone."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from orchestrator.cluster.reaper import descendants, read

Json = dict[str, Any]

ORCHESTRATE = str(Path(sys.executable).with_name("orchestrate"))
SCRIPTS = Path(__file__).parent.parent
CLASS = "task._target_=chaos_parts.paced.Paced"


class Training:
    """A run in `folder`. `told` holds (when it was read, event) by the monotonic clock."""

    def __init__(self, folder: Path, *overrides: str) -> None:
        self.folder = folder
        self.told: list[tuple[float, Json]] = []
        self.launches = 0
        self._overrides = ["task=own", CLASS, "batch_size=8", *overrides, f"hydra.run.dir={folder}"]
        self._process: subprocess.Popen[bytes] | None = None
        self._read = 0

    @property
    def pid(self) -> int:
        """Of the driver."""
        assert self._process is not None
        return self._process.pid

    def go_on(self) -> None:
        """Start, or take up what was started; what the commands print goes beside the folder."""
        begun = (self.folder / "journal.jsonl").exists()
        arguments = ["resume", str(self.folder), CLASS] if begun else ["run", *self._overrides]
        self.launches += 1
        with self.folder.with_name(f"{self.folder.name}.txt").open("ab") as output:
            self._process = subprocess.Popen(
                [ORCHESTRATE, *arguments], cwd=SCRIPTS, stdout=output, stderr=output, start_new_session=True
            )

    def status(self) -> int | None:
        """The driver's exit status, once it has one."""
        assert self._process is not None
        return self._process.poll()

    def finished(self) -> int:
        """Wait for the driver's end."""
        assert self._process is not None
        return self._process.wait()

    def end(self) -> None:
        """Leave no process behind."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def follow(self) -> list[Json]:
        """The events that have come since the last look."""
        path = self.folder / "journal.jsonl"
        if not path.exists():
            return []
        with path.open("rb") as file:
            file.seek(min(self._read, path.stat().st_size))
            lines = [line for line in file if line.endswith(b"\n")]
        self._read += sum(map(len, lines))
        new = [json.loads(line) for line in lines]
        self.told += [(time.monotonic(), event) for event in new]
        return new

    def result(self) -> Json:
        """What result.json says."""
        result: Json = json.loads((self.folder / "result.json").read_text())
        return result

    def newest_snapshot(self) -> Path | None:
        """Its largest file, if there is one."""
        folders = sorted((self.folder / "snapshots").glob("step-*"), key=lambda path: path.name)
        path = folders[-1] / "shared.safetensors" if folders else None
        return path if path and path.is_file() else None

    def workers(self) -> list[int]:
        """Living worker processes of the driver's own Ray."""
        started = (number for number, _ in descendants(self.pid, spared=set()))
        return sorted(number for number in started if read(number, "cmdline").startswith(b"ray::Worker"))
