"""What earlier runs of the same work teach the next one: where the good learning rates lie.

Read as data from the run folders under `outputs`. Work is the same where the task with its model and data, optimizer,
precision, clipping, policy and the samples of a step are: what a good rate depends on most. Nothing is taken across
tasks.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from orchestrator.config import Config
from orchestrator.earlier_run import chosen_rate
from orchestrator.errors import UserError
from orchestrator.events import Json, RunStarted
from orchestrator.journal_file import JOURNAL, read_beginning
from orchestrator.learning_rate import make_policy
from orchestrator.run_folder import read_result

_LEARNERS = ("autolrs", "autolrs_hold")
_GIVEN = ("min_lr", "max_lr", "near", "known_lr")  # keys of lr by which a person has said already where to search


def taught(config: Config) -> tuple[Config, str | None]:
    """The configuration with the search around the rate that the newest finished run of the same work chose.

    And that run's folder; the configuration as it was, and None, where there is nothing to learn from or for.
    """
    for folder in _same_work(config) if _wants_to_know(config) else ():
        try:
            if read_result(folder).get("state") == "FINISHED":
                return replace(config, lr={**config.lr, "near": chosen_rate(folder)}), str(folder)
        except UserError:
            continue  # a folder that is damaged, or a run that chose no rate, teaches nothing
    return config, None


def _wants_to_know(config: Config) -> bool:
    """Whether the policy searches an interval that nobody has named; one of several runs learns only if told to."""
    if config.lr["name"] not in _LEARNERS or any(config.lr.get(key) is not None for key in _GIVEN):
        return False
    usual = config.decide.rate == "measured" and config.parent is None
    wanted = usual if config.past is None else config.past
    return wanted and make_policy(config.lr, config.steps, config.seed).cost().probe_steps > 0


def _same_work(config: Config) -> list[Path]:
    """The folders of runs of the same work, the newest first."""
    work = _work(config.to_json())
    same = [(run.started_at, folder) for run, folder in _runs(Path(config.outputs)) if _work(run.config) == work]
    return [folder for _, folder in sorted(same, reverse=True)]


def _runs(outputs: Path) -> Iterator[tuple[RunStarted, Path]]:
    """How each run under `outputs` began, and its folder."""
    for path in outputs.rglob(JOURNAL):
        first = read_beginning(path)
        if isinstance(first, RunStarted):
            yield first, path.parent


def _work(values: Json) -> str | None:
    """What must be equal for a rate to be of use, as text to compare; None for a configuration of an older form."""
    try:
        samples = values["batch_size"] * values["accumulate"] * values["cluster"]["workers"]
        same = [values[key] for key in ("task", "optimizer", "precision", "clip")]
        return json.dumps([*same, values["lr"]["name"], samples], sort_keys=True)
    except (KeyError, TypeError):
        return None
