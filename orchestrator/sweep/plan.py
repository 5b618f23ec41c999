"""One sweep, decided: what is searched, what is the same for all trials, and that all of it can be composed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.composing import compose, configured
from orchestrator.config import CONF, Config
from orchestrator.errors import UserError
from orchestrator.learning_rate.scheduled import USUAL_STAGES
from orchestrator.sweep.notation import USUAL_TRIALS, Range, Words, parse
from orchestrator.sweep.proposals import grid_size
from orchestrator.sweep.space import Dimension, Value, Values, dimension, overrides
from orchestrator.words import policy_name

OF_ALL = ("cluster", "tracking", "hydra", "outputs", "dry_run", "evaluate")  # the same for all trials
WHILE_TRAINING = "lr.rate"  # what pb2 can change in a training under way
FOLDER = "hydra.sweep.dir"


@dataclass(frozen=True)
class Plan:
    """A sweep before it starts. fixed: overrides of every trial. config: of a trial in the middle of the space.

    corners: of one for each choice and for both ends of each range.
    """

    words: tuple[str, ...]
    search: str
    trials: int
    space: tuple[Dimension, ...]
    fixed: tuple[str, ...]
    config: Config
    corners: tuple[Config, ...]
    folder: Path

    @property
    def rounds(self) -> int:
        """Of a population: how often it is compared, at the ends of stages."""
        return int(self.config.lr.get("stages") or min(USUAL_STAGES, self.config.steps))

    @property
    def seed(self) -> int:
        """Of the search, too."""
        return self.config.seed

    def overrides(self, values: Values) -> list[str]:
        """A trial's whole command line."""
        return [*self.fixed, *overrides(values)]


def planned(words: Sequence[str]) -> Plan:
    """Read and check a command line. Raises UserError before anything is started or written."""
    asked = parse(words)
    _check_keys(asked)
    values, folder = compose([*asked.fixed, *_first_choices(asked)])
    asked = parse(words, [key for key in asked.searched if isinstance(_value_at(values, key), list)])
    space = tuple(dimension(key, where, _value_at(values, key)) for key, where in asked.searched.items())
    fixed = tuple(word for word in asked.fixed if not word.startswith(f"{FOLDER}="))
    middle = {each.key: each.value(0.5) for each in space}
    corners = tuple(configured([*fixed, *overrides(corner)]) for corner in _corners(space, middle))
    config = configured([*fixed, *overrides(middle)])
    _check_population(asked, config)
    if config.evaluate is not None:
        raise UserError(f"evaluate={config.evaluate} scores a run, and a sweep trains: use it with orchestrate run")
    return Plan(tuple(words), asked.search, _trials(asked, space), space, fixed, config, corners, folder)


def _check_keys(asked: Words) -> None:
    if not asked.searched:
        raise UserError("nothing is searched: give at least one key a range or choices, as in lr.rate=1e-4..1e-1")
    for key, where in asked.searched.items():
        if key.split(".")[0] in OF_ALL:
            raise UserError(f"{key} is the same for all trials of a sweep: give it one value")
        if isinstance(where, Range) and (CONF / key).is_dir():
            names = ",".join(sorted(path.stem for path in (CONF / key).glob("*.yaml"))[:3])
            raise UserError(f"{key} names a file of conf/{key} and has no range: list names, as in {key}=[{names}]")
        if asked.search == "pb2" and key != WHILE_TRAINING:
            raise UserError(
                f"search=pb2 changes settings while trainings run, and {key} cannot be changed then: "
                f"search {WHILE_TRAINING} alone, or choose another search"
            )
    for word in asked.fixed:
        if word.startswith("hydra.") and not word.startswith(f"{FOLDER}="):
            raise UserError(f"{word} has no meaning in a sweep: of Hydra's own keys only {FOLDER} has")


def _check_population(asked: Words, config: Config) -> None:
    if asked.search != "pb2":
        return
    if policy_name(config.to_json()) != "constant":
        raise UserError("search=pb2 sets the rate of each stage itself: choose lr=constant")
    if config.keep < 2 or _trials_asked(asked) < 4:
        raise UserError("search=pb2 takes over snapshots of better trials: set keep to 2, and trials to 4, or more")


def _first_choices(asked: Words) -> list[str]:
    """A file of each group that is searched: its keys may be searched as well."""
    choices = {key: where[0] for key, where in asked.searched.items() if isinstance(where, tuple)}
    return [f"{key}={first}" for key, first in choices.items() if (CONF / key).is_dir()]


def _value_at(values: Any, key: str) -> Any:
    """The configured value of a dotted key; None for one that is not there, which composing will tell of."""
    for name in key.lstrip("+").split("."):
        values = values.get(name) if isinstance(values, dict) else None
    return values


def _corners(space: Sequence[Dimension], middle: Values) -> Iterator[dict[str, Value]]:
    """Every choice and both ends of every range, with all else as in the middle."""
    for each in space:
        yield from ({**middle, each.key: end} for end in each.ends)


def _trials(asked: Words, space: Sequence[Dimension]) -> int:
    if asked.search != "grid":
        return _trials_asked(asked)
    for each in space:
        if not each.choices:
            raise UserError(f"search=grid tries every value, and {each.key} has a range: write {each.key}=LOW..HIGH/4")
    if asked.trials not in (None, grid_size(space)):
        raise UserError(f"search=grid tries all {grid_size(space)} combinations: leave trials={asked.trials} out")
    return grid_size(space)


def _trials_asked(asked: Words) -> int:
    return asked.trials or USUAL_TRIALS
