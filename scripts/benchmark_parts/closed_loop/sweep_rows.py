"""Sweeps: what a trial costs besides its own training, and how busy the cluster's cores are meanwhile.

`orchestrate sweep` runs as a person starts it. Times are taken from what it leaves: a trial begins when the search
names it, and ends when its outcome is written down. Beside it, Ray Tune with trials that do nothing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

Row = dict[str, Any]

ORCHESTRATE = str(Path(sys.executable).with_name("orchestrate"))
TASK = ["task=tabular", "lr=cosine", "cluster.workers=1", "lr.rate=1e-4..1e-1", "search=random", "evaluation=none"]
SHORT, LONG = 100, 24_000  # steps: seconds, and most of a minute
BARE = "tune"
_QUIET = {"TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1", "RAY_AIR_NEW_OUTPUT": "0"}


def sweep_rows(quick: bool) -> list[Row]:
    """A row a trial of a sweep of short ones and of one of longer ones, and of bare Tune."""
    short, long = (12, 4) if quick else (30, 8)
    return [*_swept("short", short, SHORT), *_swept("long", long, LONG), *_bare(short)]


def sweep_summary(rows: list[Row]) -> Row:
    """Seconds a short trial takes a core besides training, and the share of time that long ones train, by cores.

    From one trial's end to the next one's, whatever the core, both for short trials and for ones that do nothing.
    """
    by_sweep = {name: [row for row in rows if row.get("sweep") == name] for name in ("short", "long", BARE)}
    return {
        "sweep_overhead_seconds": _overhead(by_sweep["short"]),
        "sweep_seconds_between_ends": _between_ends(by_sweep["short"]),
        "bare_tune_seconds_between_ends": _between_ends(by_sweep[BARE]),
        "sweep_busy_share": _busy(by_sweep["long"]),
    }


def _overhead(rows: list[Row]) -> float:
    """Median time from a core's one trial to the end of its next, without that one's own work."""
    slots = _slots(rows)
    ends = sorted(row["end"] for row in rows)
    steady = ends[slots:]  # the first on each core begin with the cluster
    gaps = [(later - ends[place]) for place, later in enumerate(steady)]
    return median(gaps) - median(row["own_seconds"] for row in rows)


def _between_ends(rows: list[Row]) -> float:
    ends = sorted(row["end"] for row in rows)
    return (ends[-1] - ends[0]) / (len(ends) - 1)


def _busy(rows: list[Row]) -> float:
    """Own work of all trials over what the cores could have done since the first one worked, to the last's end."""
    span = max(row["end"] for row in rows) - min(row["end"] - row["own_seconds"] for row in rows)
    return float(sum(row["own_seconds"] for row in rows) / (span * _slots(rows)))


def _slots(rows: list[Row]) -> int:
    return int(rows[0]["slots"])


def _swept(name: str, trials: int, steps: int) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="sweep-") as place:
        places = [f"hydra.sweep.dir={place}/sweep", f"outputs={place}/outputs"]
        words = [*TASK, f"trials={trials}", f"steps={steps}", *places]
        subprocess.run([ORCHESTRATE, "sweep", *words], cwd=place, check=True, capture_output=True, text=True)
        return [_row(name, *told) for told in _trials(Path(place) / "sweep")]


def _trials(folder: Path) -> list[tuple[float, float, float]]:
    """Beginning, end and own seconds of each trial."""
    lines = [json.loads(line) for line in (folder / "trials.jsonl").read_text().splitlines()]
    begins = {line["trial"]: line["at"] for line in lines if "values" in line}
    ends = {line["trial"]: line["at"] for line in lines if "state" in line}
    own = [_own_seconds(path) for path in sorted((folder / "trials").glob("*/result.json"))]
    return [(begins[number], ends[number], own[number]) for number in sorted(begins)]


def _own_seconds(result: Path) -> float:
    spent = json.loads(result.read_text())["seconds"]
    return float(sum(seconds for activity, seconds in spent.items() if activity != "waiting"))


def _row(name: str, begin: float, end: float, own: float) -> Row:
    slots = os.cpu_count() or 1
    return {"sweep": name, "begin": begin, "end": end, "own_seconds": own, "slots": slots, "load": os.getloadavg()[0]}


def _bare(trials: int) -> list[Row]:
    """Of Tune with reused actors, in a process of its own, as every sweep is."""
    done = subprocess.run([sys.executable, __file__, str(trials)], check=True, capture_output=True, text=True)
    return [_row(BARE, end, end, 0.0) for end in json.loads(done.stdout.splitlines()[-1])]


def _bare_ends(trials: int) -> list[float]:
    """When each trial that does nothing has ended."""
    os.environ.update(_QUIET)
    import ray
    from ray import tune

    class Nothing(tune.Trainable):  # type: ignore[misc]
        def step(self) -> Row:
            return {"ended": time.time(), "done": True}

        def reset_config(self, new_config: Row) -> bool:
            return True

    ray.init(address="local", include_dashboard=False)
    with tempfile.TemporaryDirectory() as storage:
        results = tune.Tuner(
            tune.with_resources(Nothing, {"cpu": 1}),
            tune_config=tune.TuneConfig(num_samples=trials, reuse_actors=True),
            run_config=tune.RunConfig(storage_path=storage, verbose=0),
        ).fit()
        return [float(result.metrics["ended"]) for result in results]


if __name__ == "__main__":
    print(json.dumps(_bare_ends(int(sys.argv[1]))))
