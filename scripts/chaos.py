"""Trains while something is killed at random, and sees whether anything is lost.

    python scripts/chaos.py --minutes 15 --seed 1 --every 20

Workers are killed, stopped and told to end; so is the driver, which `orchestrate resume` follows at once; bits of
snapshots flip; the MLflow server goes. At the end the weights must be those of an undisturbed run, and MLflow must know
of the end. A fault comes every so many seconds, and not before the run has taken a step since the last one.
Exit status 1 if anything was lost.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from chaos_parts.faults import FAULTS, Tracking
from chaos_parts.training import Json, Training

PAUSE = 0.05  # seconds of a step
USEFUL = ("StepsTrained", "ProbeRan")
SETTINGS = ["lr=autolrs", "snapshot_every_steps=100", "cluster.hang_seconds=10", "cluster.max_failures=10"]
SETTINGS += ["cluster.standby=true"]


@dataclass
class Chaos:
    """What was done, and how long each took until the next useful step."""

    counts: Counter[str] = field(default_factory=Counter)
    recoveries: dict[str, list[float]] = field(default_factory=dict)
    open: list[tuple[str, float]] = field(default_factory=list)

    def done(self, name: str) -> None:
        """A fault has been done."""
        self.counts[name] += 1
        self.open.append((name, time.monotonic()))

    def useful(self, event: Json) -> None:
        """Useful work has been told of, which began some time ago."""
        seconds = event.get("seconds", event.get("train_seconds", 0.0))
        for name, then in self.open:
            self.recoveries.setdefault(name, []).append(max(time.monotonic() - seconds - then, 0.0))
        self.open.clear()


def main() -> int:
    """Disturb one run, compare it with one that was left in peace."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, required=True, help="of training, recoveries not counted")
    parser.add_argument("--seed", type=int, default=0, help="of what is done when")
    parser.add_argument("--every", type=float, default=20.0, metavar="SECONDS", help="between faults (default 20)")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to end"))
    place = Path(tempfile.mkdtemp(prefix="chaos-"))
    common = [f"steps={max(200, round(options.minutes * 60 / PAUSE))}", *SETTINGS, f"outputs={place}"]
    tracking = Tracking(place)
    peace = Training(place / "undisturbed", *common, "tracking=none")
    training = Training(place / "run", *common, f"+task.pause={PAUSE}", f"tracking.uri={tracking.uri}")
    chaos = Chaos()
    try:
        tracking.start()
        peace.go_on()
        if peace.finished():
            raise SystemExit(f"the undisturbed run failed: see {place}")
        begin = time.monotonic()
        status = disturbed(training, tracking, chaos, random.Random(options.seed), options.every)
        wall = time.monotonic() - begin
        lost = [*losses(training, peace, status), *untold(training, tracking, place)]
    finally:
        training.end()
        peace.end()
        tracking.kill()
    show(training, chaos, wall, lost)
    print(f"all of it lies in {place}")
    return 1 if lost else 0


def disturbed(training: Training, tracking: Tracking, chaos: Chaos, chance: random.Random, every: float) -> int:
    """Let the run go to its end through all that happens to it; the last exit status."""
    training.go_on()
    due = time.monotonic() + every
    while (status := training.status()) is None:
        time.sleep(0.05)
        for event in training.follow():
            if event["event"] in USEFUL:
                chaos.useful(event)
        if training.told and time.monotonic() > due and not chaos.open and any_useful(training):
            name = chance.choices(list(FAULTS), [weight for weight, _ in FAULTS.values()])[0]
            if FAULTS[name][1](training, tracking, chance):
                chaos.done(name)
            due = time.monotonic() + every * chance.uniform(0.5, 1.5)
    training.follow()
    return status


def any_useful(training: Training) -> bool:
    """Whether the run has begun to work."""
    return any(event["event"] in USEFUL for _, event in training.told)


def losses(training: Training, peace: Training, status: int) -> list[str]:
    """In what the run differs from the undisturbed one. A driver killed once all is done leaves a bad exit status."""
    if status and not any(event["event"] == "RunEnded" and event["state"] == "FINISHED" for _, event in training.told):
        return [f"the run ended with exit status {status}"]
    one, other = training.result(), peace.result()
    keys = ("state", "weights_sha256", "lr_by_step", "train_steps", "probe_steps", "validation_loss", "test")
    found = [f"{key} differs" for key in keys if one[key] != other[key]]
    probes = [(each["arm"], each["taken"]) for _, each in training.told if each["event"] == "ProbeRan"]
    return found + [f"probe {each} was made again" for each, times in Counter(probes).items() if times > 1]


def untold(training: Training, tracking: Tracking, place: Path) -> list[str]:
    """What MLflow does not know, once the next run has had time to send what was left over."""
    from mlflow import MlflowClient

    after = Training(place / "after", "steps=200", "lr=constant", f"tracking.uri={tracking.uri}", f"outputs={place}")
    until = time.monotonic() + 300
    client = MlflowClient(tracking.database)
    after.go_on()
    after.finished()
    while time.monotonic() < until:
        runs = client.search_runs([each.experiment_id for each in client.search_experiments()])
        states = {run.data.tags.get("orchestrator.folder"): run.info.status for run in runs}
        if states.get(str(training.folder)) == "FINISHED" and "RUNNING" not in states.values():
            return []
        time.sleep(2)
    return [f"MLflow has {states}"]


def show(training: Training, chaos: Chaos, wall: float, lost: list[str]) -> None:
    """The table."""
    print(f"{'fault':<24}{'times':>6}{'median s':>10}{'longest s':>11}   (fault to next useful step)")
    for name in FAULTS:
        seconds = chaos.recoveries.get(name, [])
        times = f"{median(seconds):>10.1f}{max(seconds):>11.1f}" if seconds else f"{'–':>10}{'–':>11}"
        print(f"{name:<24}{chaos.counts[name]:>6}{times}")
    print(f"{'in all':<24}{chaos.counts.total():>6}")
    useful = sum(useful_seconds(training).values())
    print(f"goodput {useful / wall:.1%}: {useful:.0f} s of useful steps in {wall:.0f} s, {training.launches} launches")
    print(f"load {' '.join(f'{each:.1f}' for each in os.getloadavg())} on {os.cpu_count()} cores")
    print("nothing was lost" if not lost else "LOST: " + "; ".join(lost))


def useful_seconds(training: Training) -> dict[object, float]:
    """Seconds of every step and probe, of those that were taken several times the last."""
    seconds: dict[object, float] = {}
    for _, event in training.told:
        if event["event"] == "StepsTrained":
            each = event["seconds"] / len(event["rates"])
            seconds |= {event["first_step"] + number: each for number in range(len(event["rates"]))}
        elif event["event"] == "ProbeRan":
            seconds[event["arm"], event["taken"]] = event["train_seconds"]
    return seconds


if __name__ == "__main__":
    sys.exit(main())
