"""A sweep's folder: sweep.json says what it is, trials.jsonl what has become of it so far, trials/ holds the runs.

Lines are only ever appended, and on the disk before anything rests on them; a line torn by a kill is cut off.
"""

import fcntl
import json
import math
import os
import re
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from orchestrator.errors import UserError
from orchestrator.names import short_name
from orchestrator.recorders.appending import append_line, open_for_appending
from orchestrator.run_state import RunState
from orchestrator.sweep.plan import Plan
from orchestrator.sweep.proposals import Tried
from orchestrator.sweep.space import Values, value_text
from orchestrator.typed_values import check_types

SWEEP, TRIALS, BEST = "sweep.json", "trials.jsonl", "best.yaml"
FORMAT = 1
LONGEST_NAME = 44
_NAME = re.compile(r"\d{3,}-[A-Za-z0-9._=,+-]{1,64}")


@dataclass(frozen=True)
class Trial:
    """One run of a sweep. name: of its folder. state: as of its run; KILLED where the search ended it early.

    loss: its last validation's. seconds: that it was worked on. reason: why it failed.
    """

    number: int
    values: Values
    name: str
    state: str = RunState.RUNNING
    loss: float | None = None
    steps: int = 0
    seconds: float = 0.0
    reason: str | None = None

    def finished(self, result: dict[str, Any]) -> "Trial":
        """With what its run's result says."""
        told = {"loss": result["validation_loss"], "steps": result["train_steps"], "seconds": result["wall_seconds"]}
        return replace(self, state=RunState.FINISHED, **told)

    @property
    def tried(self) -> Tried:
        """As a search sees it."""
        worth = math.inf if self.loss is None or self.state == RunState.FAILED else self.loss
        return Tried(self.values, None if self.state == RunState.RUNNING else worth)


def trial_name(number: int, values: Values) -> str:
    """Of a trial's folder: `007-rate=0.0032,batch_size=64`."""
    parts = [f"{key.rsplit('.', 1)[-1]}={value_text(value)}" for key, value in values.items()]
    return short_name(f"{number:03d}-{re.sub(r'[^A-Za-z0-9._=,+-]', '_', ','.join(parts))}", LONGEST_NAME)


def best_of(trials: Sequence[Trial]) -> Trial | None:
    """The finished trial with the lowest loss; the first of equals."""
    losses = [(trial.loss, trial) for trial in trials if trial.state == RunState.FINISHED and trial.loss is not None]
    return min(losses, key=lambda pair: pair[0])[1] if losses else None


@dataclass
class Book:
    """The trials of one sweep, held by this process alone until the block ends."""

    folder: Path
    identity: dict[str, Any]
    trials: list[Trial] = field(default_factory=list)

    def folder_of(self, trial: Trial) -> Path:
        """Where a trial's run lies."""
        return self.folder / "trials" / trial.name

    def begin(self, values: Values) -> Trial:
        """One more trial."""
        trial = Trial(len(self.trials), dict(values), trial_name(len(self.trials), values))
        self._append({"trial": trial.number, "name": trial.name, "values": trial.values})
        self.trials.append(trial)
        return trial

    def change(self, trial: Trial) -> None:
        """Its values from now on."""
        self._append({"trial": trial.number, "values": trial.values})
        self.trials[trial.number] = trial

    def end(self, trial: Trial) -> None:
        """What has become of it."""
        told = {name: value for name, value in asdict(trial).items() if name not in ("number", "values", "name")}
        loss = trial.loss if trial.loss is not None and math.isfinite(trial.loss) else None
        self._append({"trial": trial.number, **told, "loss": loss})
        self.trials[trial.number] = trial

    def _append(self, values: dict[str, Any]) -> None:
        line = json.dumps({"at": round(time.time(), 3), **values})  # for people; nothing rests on it
        try:
            append_line(self._file, line.encode() + b"\n")
            os.fsync(self._file.fileno())
        except OSError as error:
            place = self.folder / TRIALS
            raise UserError(
                f"{place} cannot be written ({error.strerror}): make room, then resume the sweep"
            ) from error

    def __enter__(self) -> Self:
        self._file = open_for_appending(self.folder / TRIALS)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise UserError(f"{self.folder} is being worked on by another process: wait for it or end it") from None
        try:
            self.trials, intact = _read_trials(self.folder / TRIALS, self.identity["id"])
        except UserError:
            self._file.close()
            raise
        self._file.truncate(intact)
        if not intact:
            self._append({"sweep": self.identity["id"]})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def require_no_sweep(folder: Path) -> None:
    """Refuse to start a sweep in the folder of another one."""
    if (folder / SWEEP).exists():
        raise UserError(
            f"{folder} already holds a sweep; go on with it by 'orchestrate resume {folder}', "
            "or choose another folder with hydra.sweep.dir=…"
        )


def new_book(plan: Plan) -> Book:
    """Make the folder of a sweep that `require_no_sweep` has found free."""
    identity = {
        "format": FORMAT,
        "id": uuid.uuid4().hex,
        "version": version("training-orchestrator"),
        "search": plan.search,
        "trials": plan.trials,
        "seed": plan.seed,
        "words": list(plan.words),
        "place": str(Path.cwd()),
    }
    plan.folder.mkdir(parents=True, exist_ok=True)
    unfinished = plan.folder / f".{SWEEP}"
    unfinished.write_text(json.dumps(identity, indent=2) + "\n")
    unfinished.replace(plan.folder / SWEEP)
    return Book(plan.folder, identity)


def old_book(folder: Path) -> Book:
    """The sweep in a folder. Raises UserError for what is none, or one of another version's form."""
    try:
        identity = json.loads((folder / SWEEP).read_bytes())
        texts = [*identity["words"], identity["place"], identity["id"]]
        fits = identity["format"] == FORMAT and all(isinstance(each, str) for each in texts)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"{folder / SWEEP} cannot be read: name the folder that a sweep printed") from error
    if not fits:
        raise UserError(f"{folder / SWEEP} is of another version of this program: resume it with that one")
    return Book(folder.absolute(), identity)


def _read_trials(path: Path, sweep: str) -> tuple[list[Trial], int]:
    """All trials told of, and how many bytes the whole lines take. UserError for a damaged line or another sweep's."""
    trials: list[Trial] = []
    intact = 0
    lines = path.read_bytes().splitlines(keepends=True)
    if lines and lines[-1][-1:] != b"\n":
        lines.pop()  # torn
    for number, line in enumerate(lines, start=1):
        try:
            values = json.loads(line)
            if number > 1:
                _take(values, trials)
            elif values["sweep"] != sweep:
                raise UserError(f"{path} is of another sweep than {SWEEP} beside it: put back the one that was there")
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
            raise UserError(f"{path} is damaged at line {number}: cut the file off before that line") from error
        intact += len(line)
    return trials, intact


def _take(values: dict[str, Any], trials: list[Trial]) -> None:
    """One line: a trial's beginning, or what has become of it."""
    number, _ = values.pop("trial"), values.pop("at")
    if number == len(trials):
        if not _NAME.fullmatch(values["name"]):
            raise ValueError(f"{values['name']!r} is no name of a folder of ours")
        trials.append(Trial(number, values["values"], values["name"]))
    else:
        trials[number] = replace(trials[number], **values)
    check_types(trials[number])
    RunState(trials[number].state)
