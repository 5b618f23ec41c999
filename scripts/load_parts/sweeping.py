"""A search over many small trainings whose driver is killed on the way, each time resumed: nothing is made twice."""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

Json = dict[str, object]
ORCHESTRATE = str(Path(sys.executable).with_name("orchestrate"))
TOY = ["task=tabular", "steps=20", "lr=constant", "tracking=none", "cluster.workers=1", "search=random"]


def carry_trials(folder: Path, options: argparse.Namespace) -> Json:
    """So many trials through so many kills -9, evenly spread over them."""
    begin, place = time.monotonic(), folder / "sweep"
    words = ["sweep", *TOY, "lr.rate=1e-4..1e-1", f"trials={options.trials}", f"hydra.sweep.dir={place}"]
    for kill in range(1, options.kills + 1):
        _killed(folder, words, place, options.trials * kill // (options.kills + 1))
        words = ["resume", str(place)]
    status = _started(folder, *words).wait()
    return {"wall": round(time.monotonic() - begin, 1), "exit": status, **_left(place)}


def _started(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "RAY_worker_niceness": "0"}
    with (folder / "output").open("ab") as output:
        return subprocess.Popen([ORCHESTRATE, *words], cwd=folder, env=environment, stdout=output, stderr=output)


def _killed(folder: Path, words: list[str], place: Path, ended: int) -> None:
    """Let it go on until so many trials have ended."""
    process = _started(folder, *words)
    while process.poll() is None and len(_told(place, "state")) < ended:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()


def _left(place: Path) -> Json:
    """What the sweep says of its trials, and how often each run has begun and ended by its own journal."""
    journals = [path.read_text() for path in (place / "trials").glob("*/journal.jsonl")]
    return {
        "begun": len(set(_told(place, "values"))),
        "ended": len(set(_told(place, "state"))),
        "told_twice": len(_told(place, "state")) - len(set(_told(place, "state"))),
        "runs_begun": dict(Counter(text.count('"RunStarted"') for text in journals)),
        "runs_ended": dict(Counter(text.count('"RunEnded"') for text in journals)),
        "resumed": sum(text.count('"RunResumed"') for text in journals),
    }


def _told(place: Path, what: str) -> list[int]:
    """Numbers of the trials of which lines of this kind tell; a line that is just being written does not count."""
    text = (place / "trials.jsonl").read_text() if (place / "trials.jsonl").is_file() else ""
    lines = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
    return [line["trial"] for line in lines if what in line]
